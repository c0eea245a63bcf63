#include "monitor/report/reasons.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::report {
namespace {

using core::Band;
using core::Feature;
using core::Outcome;
using core::Rule;
using core::ThreadState;

// A window in which the vCPU ran throughout, with counts of no loop in particular.
core::Features BusyFeatures() {
  core::Features features{.interval_ns = 100'000'000,
                          .enabled_share = 1,
                          .enabled = true,
                          .running_share = 1,
                          .residency = 1.0,
                          .cycles_counted = true,
                          .instructions_counted = true};
  features.Set(Feature::kCycles, 3e8);
  features.Set(Feature::kIpc, 0.9);
  features.Set(Feature::kBranchShare, 0.05);
  features.Set(Feature::kBranchMisses, 0.15);
  features.Set(Feature::kCacheMisses, 0.2);
  return features;
}

core::Features Loop(double ipc) {
  core::Features features = BusyFeatures();
  features.Set(Feature::kIpc, ipc);
  features.Set(Feature::kBranchShare, 0.3);
  features.Set(Feature::kBranchMisses, 0.01);
  features.Set(Feature::kCacheMisses, 0.01);
  return features;
}

core::Features With(core::Features features, Feature feature, std::optional<double> value) {
  features.measured &= ~(1u << static_cast<unsigned>(feature));
  if (value) features.Set(feature, *value);
  return features;
}

core::Profile WithSpinIpc() {
  core::Profile profile;
  profile.evidence.spin_ipc[0] = {0.02, 0.05};
  profile.evidence.spin_ipcs = 1;
  return profile;
}

Reasons Evidence(const core::Features& features, const core::Profile& profile = {}) {
  return FindReasons(features, profile, core::Classifier::kEvidence, Band::kNone);
}

const RuleTrial* Fired(const Reasons& reasons) {
  return reasons.fired ? &reasons.rules[*reasons.fired] : nullptr;
}

struct RuleCase {
  Rule rule;
  core::Features features;
  core::Profile profile{};
};

// Every rule of `evidence` can be the one that is marked, with conditions that all hold.
TEST(Reasons, MarkEachRule) {
  const core::Features slow_loop =
      With(With(With(BusyFeatures(), Feature::kIpc, 0.1), Feature::kBranchMisses, 0.01),
           Feature::kCacheMisses, 0.01);
  const std::vector<RuleCase> cases = {
      {Rule::kShort, With(BusyFeatures(), Feature::kCycles, 1e5)},
      {Rule::kPause, With(Loop(0.03), Feature::kPauseShare, 0.9)},
      {Rule::kMixed, With(Loop(0.6), Feature::kPauseShare, 0.2)},
      {Rule::kSpinIpc, Loop(0.03), WithSpinIpc()},
      {Rule::kTightLoop, Loop(0.7)},
      {Rule::kTightLoop, Loop(0.2)},
      {Rule::kPollLike, Loop(2)},
      {Rule::kPollLike, With(Loop(2), Feature::kIpcSpread, 0.001)},
      {Rule::kSlowLoop, With(slow_loop, Feature::kBranchShare, std::nullopt)},
      {Rule::kMemoryBound,
       With(With(BusyFeatures(), Feature::kIpc, 0.3), Feature::kCacheMisses, 5)},
      {Rule::kIpcHigh, With(BusyFeatures(), Feature::kIpc, 1.5)},
      {Rule::kBranchMisses, With(BusyFeatures(), Feature::kBranchMisses, 2)},
  };
  for (const RuleCase& c : cases) {
    const Reasons reasons = Evidence(c.features, c.profile);
    SCOPED_TRACE(std::string(core::ToString(c.rule)));
    const RuleTrial* fired = Fired(reasons);
    ASSERT_NE(fired, nullptr);
    EXPECT_EQ(fired->rule, c.rule);
    EXPECT_FALSE(reasons.decided_by_presence);
    for (const Comparison& condition : fired->conditions) EXPECT_EQ(condition.holds, true);
    EXPECT_EQ(reasons.raw, core::EvidenceRules(c.profile.evidence).Judge(c.features));
    for (size_t i = 0; i < *reasons.fired; ++i) {
      EXPECT_NE(reasons.rules[i].outcome, Outcome::kHolds);
    }
  }
}

TEST(Reasons, NoRuleSpeaks) {
  const Reasons reasons = Evidence(BusyFeatures());
  EXPECT_EQ(reasons.raw.rule, Rule::kUnclear);
  EXPECT_EQ(reasons.fired, std::nullopt);
  ASSERT_TRUE(reasons.runner_up);
  // IPC 0.90 lacks ln(1.00 / 0.90) of ipc-high; branch misses lack ln(0.20 / 0.15).
  EXPECT_EQ(reasons.rules[*reasons.runner_up].rule, Rule::kIpcHigh);
}

TEST(Reasons, RunnerUpThatHoldsToo) {
  const Reasons reasons = Evidence(With(Loop(0.03), Feature::kPauseShare, 0.9));
  ASSERT_TRUE(reasons.runner_up);
  EXPECT_EQ(reasons.rules[*reasons.runner_up].rule, Rule::kMixed);
  EXPECT_EQ(reasons.rules[*reasons.runner_up].outcome, Outcome::kHolds);
}

// Fewest failing conditions come first, whatever their distance.
TEST(Reasons, RunnerUpComesFromLaterRulesAlone) {
  const Reasons reasons = Evidence(With(BusyFeatures(), Feature::kIpc, 1.5));
  ASSERT_TRUE(reasons.runner_up);
  EXPECT_GT(*reasons.runner_up, *reasons.fired);
  EXPECT_EQ(reasons.rules[*reasons.runner_up].rule, Rule::kBranchMisses);
}

TEST(Reasons, AbsentFeaturesSkipARule) {
  const Reasons reasons = Evidence(With(Loop(0.7), Feature::kBranchMisses, std::nullopt));
  for (const RuleTrial& trial : reasons.rules) {
    if (trial.rule != Rule::kTightLoop) continue;
    EXPECT_EQ(trial.outcome, Outcome::kSkipped);
    bool met = false;
    for (const Comparison& condition : trial.conditions) {
      met = met || (!condition.value && !condition.holds &&
                    condition.what == "branch misses per kilo-cycle");
    }
    EXPECT_TRUE(met);
  }
  if (reasons.runner_up) {
    EXPECT_NE(reasons.rules[*reasons.runner_up].outcome, Outcome::kSkipped);
  }
}

TEST(Reasons, AWeakVerdictSaysSo) {
  core::Profile profile;
  profile.evidence.weak_below = 0.9;
  const Reasons reasons = Evidence(Loop(0.7), profile);
  EXPECT_EQ(reasons.raw.rule, Rule::kWeak);
  ASSERT_TRUE(reasons.fired);
  EXPECT_EQ(reasons.weak_below, 0.9);
}

TEST(Reasons, OfIpcBands) {
  const auto judge = [](std::optional<double> ipc) {
    return FindReasons(With(BusyFeatures(), Feature::kIpc, ipc), {}, core::Classifier::kIpcBands,
                       Band::kNone);
  };
  EXPECT_EQ(Fired(judge(0.5))->rule, Rule::kIpcLow);
  EXPECT_EQ(Fired(judge(1.0))->rule, Rule::kIpcHigh);
  EXPECT_EQ(judge(0.9).raw.rule, Rule::kBetweenBands);
  EXPECT_EQ(judge(0.9).fired, std::nullopt);
  EXPECT_EQ(judge(0.9).runner_up, 1U);  // 1.00 is nearer than 0.75
  EXPECT_EQ(judge(std::nullopt).raw.rule, Rule::kNoInstructions);
  EXPECT_EQ(judge(std::nullopt).rules[0].outcome, Outcome::kSkipped);
}

struct PresenceCase {
  core::Features features;
  Rule rule;
  std::string last;  // the comparison that decided
  std::optional<bool> holds;
};

core::Features Idle(ThreadState state, double waiting_share = 0) {
  return {.interval_ns = 100'000'000,
          .waiting_share = waiting_share,
          .cycles_counted = true,
          .state = state};
}

core::Features Little(double enabled_share, double residency,
                      ThreadState state = ThreadState::kNotRead, double waiting_share = 0) {
  core::Features features = BusyFeatures();
  features.enabled_share = enabled_share;
  features.residency = residency;
  features.state = state;
  features.waiting_share = waiting_share;
  return features;
}

TEST(Reasons, OfPresenceEndWithWhatDecided) {
  core::Features no_counters = BusyFeatures();
  no_counters.cycles_counted = false;
  no_counters.residency.reset();
  core::Features hardly_counted = BusyFeatures();
  hardly_counted.running_share = 0.01;
  core::Features no_residency = BusyFeatures();
  no_residency.residency.reset();
  const std::vector<PresenceCase> cases = {
      {Idle(ThreadState::kBlocked), Rule::kBlocked, "waiting for a CPU", false},
      {Idle(ThreadState::kBlocked, 0.8), Rule::kStarved, "waiting for a CPU", true},
      {Idle(ThreadState::kNotRead), Rule::kStateUnknown, "waiting for a CPU", false},
      {Idle(ThreadState::kRunnable), Rule::kStarved, "thread state: runnable", std::nullopt},
      {Idle(ThreadState::kStopped), Rule::kPaused, "thread state: stopped", std::nullopt},
      {Idle(ThreadState::kPaused), Rule::kPaused, "thread state: paused", std::nullopt},
      {Little(0.01, 0.01), Rule::kResidency, "waiting for a CPU", false},
      {Little(0.01, 0.01, ThreadState::kRunnable, 0.2), Rule::kStarved, "waiting for a CPU", true},
      {Little(0.01, 0.01, ThreadState::kRunnable), Rule::kStateUnknown, "waiting for a CPU", false},
      {Little(0.5, 0.01), Rule::kPolling, "waiting for a CPU", false},
      {Little(0.03, 0.01), Rule::kResidency, "waiting for a CPU", false},
      {Little(0.03, 0.01, ThreadState::kNotRead, 0.9), Rule::kStarved, "waiting for a CPU", true},
      {no_counters, Rule::kNoCounters, "cycles: not counted", std::nullopt},
      {hardly_counted, Rule::kNotCounted, "counted share of the time on a CPU", true},
      {no_residency, Rule::kNoResidency, "residency", std::nullopt},
  };
  for (const PresenceCase& c : cases) {
    const Reasons reasons = Evidence(c.features);
    SCOPED_TRACE(std::string(core::ToString(c.rule)) + " " + c.last);
    EXPECT_TRUE(reasons.decided_by_presence);
    EXPECT_EQ(reasons.raw.rule, c.rule);
    ASSERT_FALSE(reasons.presence.empty());
    EXPECT_EQ(reasons.presence.back().what, c.last);
    EXPECT_EQ(reasons.presence.back().holds, c.holds);
    EXPECT_TRUE(reasons.rules.empty());
  }
}

// HALTED is left later than it is entered, and the comparison shows with what.
TEST(Reasons, TheFloorFollowsTheBandBefore) {
  const core::Features features = Little(1, 0.03);
  const auto floor = [&](Band previous) {
    const Reasons reasons = FindReasons(features, {}, core::Classifier::kEvidence, previous);
    EXPECT_EQ(reasons.decided_by_presence, previous == Band::kHalted);
    return reasons.presence.front().threshold;
  };
  EXPECT_EQ(floor(Band::kHalted), 0.04);
  EXPECT_EQ(floor(Band::kProductive), 0.02);
}

}  // namespace
}  // namespace vcpulse::report

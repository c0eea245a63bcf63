// The presence rules at their exact thresholds, as features. classify_test.cc has them as deltas.

#include "monitor/core/presence.h"

#include <gtest/gtest.h>

#include <optional>

#include "monitor/core/classify.h"

namespace vcpulse::core {
namespace {

constexpr double kPresenceBelow = 1 - 1e-9;

// Ran all the time, counted all the time.
Features Busy() {
  return {.interval_ns = 100'000'000,
          .enabled_share = 1,
          .enabled = true,
          .waiting_share = 0,
          .running_share = 1,
          .residency = 1,
          .cycles_counted = true,
          .instructions_counted = true};
}

std::optional<Judgement> Judge(const Features& features, Band previous = Band::kNone) {
  return JudgePresence(features, PresenceThresholds{}, previous);
}

constexpr Judgement kPresenceHalted{Band::kHalted, Rule::kResidency, 0.99};

constexpr Judgement UnknownBy(Rule rule) { return {Band::kUnknown, rule, 0}; }

TEST(Presence, LeavesOpenWhatRanAndWasCounted) { EXPECT_EQ(Judge(Busy()), std::nullopt); }

TEST(Presence, TheFloorItselfIsNotHalted) {
  Features features = Busy();
  features.enabled_share = 0.02;
  EXPECT_EQ(Judge(features), std::nullopt);
  features.enabled_share = 0.02 * kPresenceBelow;
  EXPECT_EQ(Judge(features), kPresenceHalted);
  features = Busy();
  features.enabled_share = 0.05;
  features.residency = 0.02;
  EXPECT_EQ(Judge(features), std::nullopt);
  features.residency = 0.02 * kPresenceBelow;
  EXPECT_EQ(Judge(features), kPresenceHalted);
}

TEST(Presence, AHaltedVcpuLeavesAtTheHigherFloor) {
  Features features = Busy();
  features.enabled_share = 0.1;
  features.residency = 0.04;
  EXPECT_EQ(Judge(features, Band::kHalted), std::nullopt);
  features.residency = 0.04 * kPresenceBelow;
  EXPECT_EQ(Judge(features, Band::kHalted), kPresenceHalted);
  EXPECT_EQ(Judge(features, Band::kSpinning), std::nullopt);
  features.enabled_share = 0.04;
  features.residency = 0.04;
  EXPECT_EQ(Judge(features, Band::kHalted), std::nullopt);
}

TEST(Presence, MoreThanFiveTimesTheResidencyIsPolling) {
  Features features = Busy();
  features.residency = 0.01;
  features.enabled_share = 0.05;
  EXPECT_EQ(Judge(features), kPresenceHalted);
  features.enabled_share = 0.0501;
  EXPECT_EQ(Judge(features), (Judgement{Band::kHalted, Rule::kPolling, 0.99}));
}

// 10 % at 0.8 of 5.5 GHz looks like 1.5 % of the highest frequency.
TEST(Presence, ALowerBoundHaltsOnlyWhatCannotHaveRun) {
  Features features = Busy();
  features.residency = 0.0145;
  features.enabled_share = 0.10;
  features.residency_at_most = 0.10;
  EXPECT_EQ(Judge(features), UnknownBy(Rule::kSlowClock));
  EXPECT_DOUBLE_EQ(MostResidency(features, PresenceThresholds{}), 0.10);
  // Its thread was not on a CPU for longer.
  features.residency_at_most = 0.06;
  EXPECT_EQ(Judge(features), UnknownBy(Rule::kSlowClock));
  features.residency_at_most = 0.06 * kPresenceBelow;
  EXPECT_EQ(Judge(features), (Judgement{Band::kHalted, Rule::kPolling, 0.60}));
  features.residency_at_most = 0.02;
  EXPECT_EQ(Judge(features), (Judgement{Band::kHalted, Rule::kPolling, 0.60}));
  features.residency_at_most = 0.02 * kPresenceBelow;
  EXPECT_EQ(Judge(features), (Judgement{Band::kHalted, Rule::kPolling, 0.99}));
  // No core is so slow: the host polled.
  features.enabled_share = features.residency_at_most.emplace(0.5);
  features.residency = 0.06 * 0.14;
  EXPECT_EQ(Judge(features), UnknownBy(Rule::kSlowClock));
  features.residency = 0.06 * 0.14 * kPresenceBelow;
  EXPECT_EQ(Judge(features), (Judgement{Band::kHalted, Rule::kPolling, 0.60}));
  features.residency = 0.02 * 0.14 * kPresenceBelow;
  EXPECT_EQ(Judge(features), (Judgement{Band::kHalted, Rule::kPolling, 0.99}));
}

TEST(Presence, WithoutAResidencyTheBoundIsTheMost) {
  EXPECT_EQ(MostResidency(Features{}, PresenceThresholds{}), 0);
}

// Counters of a confidential guest, or of a PMU that is not there: they open and stay 0.
TEST(Presence, AGroupThatNeverCountedSaysNothing) {
  Features features = Busy();
  features.residency = 0;
  features.never_counted = true;
  features.ran_since_start_ns = 20'000'000;
  EXPECT_EQ(Judge(features), UnknownBy(Rule::kNotCounted));
  features.ran_since_start_ns = 19'999'999;
  EXPECT_EQ(Judge(features), (Judgement{Band::kHalted, Rule::kPolling, 0.60}));
  features.ran_since_start_ns = int64_t{1} << 40;
  features.never_counted = false;  // it has counted before: the VMM was busy
  EXPECT_EQ(Judge(features), (Judgement{Band::kHalted, Rule::kPolling, 0.99}));
  features.never_counted = true;
  features.enabled_share = 0.01;  // whatever it ran, it was little
  EXPECT_EQ(Judge(features)->band, Band::kHalted);
}

TEST(Presence, AThreadThatWaitsForIoIsNotHalted) {
  Features off = Busy();
  off.enabled = false;
  off.enabled_share = 0;
  off.state = ThreadState::kIoWait;
  EXPECT_EQ(Judge(off), (Judgement{Band::kUnknown, Rule::kIoWait, 0.99}));
  Features features = Busy();
  features.enabled_share = features.residency.emplace(0.01);
  features.state = ThreadState::kIoWait;
  EXPECT_EQ(Judge(features), UnknownBy(Rule::kIoWait));
}

// Half of the window itself is not "mostly".
TEST(Presence, MostlyWaitingIsMoreThanHalf) {
  Features features = Busy();
  features.residency = 0.01;
  features.enabled_share = 0.05;
  features.waiting_share = 0.5;
  EXPECT_EQ(Judge(features), kPresenceHalted);
  features.waiting_share = 0.5 / kPresenceBelow;
  EXPECT_EQ(Judge(features), UnknownBy(Rule::kStarved));

  Features off = Busy();
  off.enabled = false;
  off.enabled_share = 0;
  off.state = ThreadState::kBlocked;
  off.waiting_share = 0.5;
  EXPECT_EQ(Judge(off), (Judgement{Band::kHalted, Rule::kBlocked, 0.99}));
  off.waiting_share = 0.5 / kPresenceBelow;
  EXPECT_EQ(Judge(off), UnknownBy(Rule::kStarved));
}

TEST(Presence, AThreadStateIsSure) {
  Features off = Busy();
  off.enabled = false;
  off.enabled_share = 0;
  off.state = ThreadState::kRunnable;
  EXPECT_EQ(Judge(off), (Judgement{Band::kUnknown, Rule::kStarved, 0.99}));
  off.state = ThreadState::kStopped;
  EXPECT_EQ(Judge(off), (Judgement{Band::kUnknown, Rule::kPaused, 0.99}));
  off.state = ThreadState::kNotRead;
  EXPECT_EQ(Judge(off), UnknownBy(Rule::kStateUnknown));
}

TEST(Presence, ATwentiethOfTheTimeIsCounted) {
  Features features = Busy();
  features.running_share = 0.05;
  EXPECT_EQ(Judge(features), std::nullopt);
  features.running_share = 0.05 * kPresenceBelow;
  EXPECT_EQ(Judge(features), UnknownBy(Rule::kNotCounted));
  // With the limit off, nothing counted is nothing all the same.
  features.running_share = 0;
  EXPECT_EQ(JudgePresence(features, {.counted_from = 0}, Band::kNone),
            UnknownBy(Rule::kNotCounted));
}

// A CSV of counters alone: the vCPU may have waited for a CPU, which nothing shows.
TEST(Presence, HaltedIsLessSureWhereWaitingIsNotKnown) {
  Features features = Busy();
  features.residency = 0.01;
  features.enabled_share = 0.01;
  features.waiting_share.reset();
  EXPECT_EQ(Judge(features), (Judgement{Band::kHalted, Rule::kResidency, 0.60}));
  EXPECT_FALSE(IsStarved(features, PresenceThresholds{}));
  features.state = ThreadState::kBlocked;
  EXPECT_EQ(Judge(features), kPresenceHalted);
}

// Ref-cycles alone give the residency.
TEST(Presence, RefCyclesAloneTellHalted) {
  Features features = Busy();
  features.cycles_counted = false;
  EXPECT_EQ(Judge(features), std::nullopt);
  features.residency = 0.001;
  features.enabled_share = 0.05;
  EXPECT_EQ(Judge(features), (Judgement{Band::kHalted, Rule::kPolling, 0.99}));
}

TEST(Presence, TheReasonsOfUnknown) {
  Features features = Busy();
  features.residency.reset();
  EXPECT_EQ(Judge(features), UnknownBy(Rule::kNoResidency));
  features.cycles_counted = false;
  EXPECT_EQ(Judge(features), UnknownBy(Rule::kNoCounters));
}

TEST(Presence, StarvedIsMoreThanATenth) {
  Features features = Busy();
  features.waiting_share = 0.10;
  EXPECT_FALSE(IsStarved(features, PresenceThresholds{}));
  features.waiting_share = 0.10 / kPresenceBelow;
  EXPECT_TRUE(IsStarved(features, PresenceThresholds{}));
}

TEST(Presence, WithoutAnythingRunARunnableThreadIsStarved) {
  Features features = Busy();
  features.state = ThreadState::kRunnable;
  EXPECT_FALSE(IsStarved(features, PresenceThresholds{}));
  features.enabled = false;
  EXPECT_TRUE(IsStarved(features, PresenceThresholds{}));
  features.state = ThreadState::kBlocked;
  EXPECT_FALSE(IsStarved(features, PresenceThresholds{}));
}

TEST(IpcBandsRule, GivesLittleConfidence) {
  Features features = Busy();
  EXPECT_EQ(JudgeIpcBands(features, {}), UnknownBy(Rule::kNoInstructions));
  features.Set(Feature::kIpc, 0.8);
  EXPECT_EQ(JudgeIpcBands(features, {}), UnknownBy(Rule::kBetweenBands));
  features.Set(Feature::kIpc, 0.5);
  EXPECT_EQ(JudgeIpcBands(features, {}), (Judgement{Band::kSpinning, Rule::kIpcLow, 0.30}));
  features.Set(Feature::kIpc, 1.5);
  EXPECT_EQ(JudgeIpcBands(features, {}), (Judgement{Band::kProductive, Rule::kIpcHigh, 0.30}));
}

}  // namespace
}  // namespace vcpulse::core

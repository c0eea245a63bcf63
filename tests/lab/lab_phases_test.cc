// A guest that works a second and is halted a second, in turn, under the evidence classifier. The
// PMU of the lab counts no branches, so work shows by its IPC alone.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

constexpr double kHz = 1e9;  // of the emulated PMU clock
constexpr int64_t kPhase_ns = 1'000'000'000;

RecordedVm VmOf(const std::string& file) {
  const RecordedTimeline recorded = Load(OutputPath("phases-0", file));
  const uint32_t number = recorded.NumberOf("phases");
  return number == 0 ? RecordedVm{} : recorded.vms.at(number);
}

// The share of the interval in which the vCPU ran, by its cycles: no classifier was asked.
double Ran(const Interval& interval) {
  return static_cast<double>(interval.delta.counts[*interval.slots.cycles]) /
         (kHz * 1e-9 * static_cast<double>(interval.delta.interval_ns));
}

// At each change of what the vCPU did, the ticks until the band says so; and the length of each
// phase, which the guest keeps to a second.
TEST(Phases, EachChangeIsSeenWithinTwoTicks) {
  const RecordedVm vm = VmOf("phases.vpt");
  ASSERT_EQ(vm.intervals.size(), 1u);
  const std::vector<Interval>& ticks = vm.intervals.at(0);
  ASSERT_GE(ticks.size(), 85u);  // of 9 s

  int changes = 0;
  int64_t phase_ns = 0;
  bool works = Ran(ticks.front()) > 0.5;
  for (size_t i = 0; i < ticks.size(); ++i) {
    const bool now = Ran(ticks[i]) > 0.5;
    if (now != works) {
      if (changes > 0) {
        EXPECT_NEAR(static_cast<double>(phase_ns), kPhase_ns, 0.15 * kPhase_ns) << "tick " << i;
      }
      works = now;
      ++changes;
      phase_ns = 0;
      const core::Band wanted = now ? core::Band::kProductive : core::Band::kHalted;
      size_t delay = 0;
      while (i + delay < ticks.size() && ticks[i + delay].verdict.band != wanted) ++delay;
      if (i + 2 < ticks.size()) {
        EXPECT_LE(delay, 2u) << "tick " << i;
      }
    }
    phase_ns += ticks[i].delta.interval_ns;
  }
  EXPECT_GE(changes, 7);
}

TEST(Phases, InsideAPhaseTheBandIsRightAndOnlyRulesWithoutBranchesSpeak) {
  const RecordedVm vm = VmOf("phases.vpt");
  ASSERT_EQ(vm.intervals.size(), 1u);
  ASSERT_EQ(vm.sets.front().classifier(), "evidence");
  int worked = 0;
  int halted = 0;
  for (const Interval& interval : vm.intervals.at(0)) {
    const core::Verdict& verdict = interval.verdict;
    if (Ran(interval) > 0.95) {
      EXPECT_EQ(verdict.raw_band, core::Band::kProductive) << "tick " << interval.tick;
      EXPECT_EQ(verdict.raw_rule, core::Rule::kIpcHigh) << "tick " << interval.tick;
      EXPECT_GT(verdict.confidence_pct, 0) << "tick " << interval.tick;
      ++worked;
    } else if (Ran(interval) < 0.01) {
      EXPECT_EQ(verdict.band, core::Band::kHalted) << "tick " << interval.tick;
      // Without ref-cycles its core may have been a slow one.
      EXPECT_GE(verdict.confidence_pct, 60) << "tick " << interval.tick;
      ++halted;
    }
  }
  EXPECT_GE(worked, 25);
  EXPECT_GE(halted, 25);
}

TEST(Phases, ClassifyingTheTimelineAgainGivesTheSameVerdicts) {
  const RecordedVm live = VmOf("phases.vpt");
  const RecordedVm again = VmOf("again.vpt");
  ASSERT_EQ(live.intervals.size(), 1u);
  ASSERT_EQ(again.intervals.size(), 1u);
  ASSERT_EQ(live.intervals.at(0).size(), again.intervals.at(0).size());
  for (size_t i = 0; i < live.intervals.at(0).size(); ++i) {
    EXPECT_EQ(live.intervals.at(0)[i].verdict, again.intervals.at(0)[i].verdict) << i;
    EXPECT_EQ(live.intervals.at(0)[i].delta, again.intervals.at(0)[i].delta) << i;
  }
}

}  // namespace
}  // namespace vcpulse::lab

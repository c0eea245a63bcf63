#include "monitor/recorder/step_down.h"

#include <gtest/gtest.h>

namespace vcpulse::recorder {
namespace {

constexpr uint64_t kMs = 1'000'000;

core::VcpuSample Vcpu(uint64_t enabled_ms, uint64_t running_ms) {
  return {.time_enabled_ns = enabled_ms * kMs, .time_running_ns = running_ms * kMs};
}

core::GroupSample Group(uint64_t enabled_ms, uint64_t running_ms) {
  return {.time_enabled_ns = enabled_ms * kMs, .time_running_ns = running_ms * kMs};
}

using Finding = RunWatch::Finding;

// What a watch that sees this sample three times finds.
Finding After(const core::Sample& sample, size_t core_pmus, bool multiplexed) {
  RunWatch watch(sample.vcpus.size(), 1 + sample.FurtherGroups(), core_pmus, multiplexed);
  watch.Observe(sample);
  watch.Observe(sample);
  return watch.Observe(sample);
}

TEST(RunWatch, NeedsSomeTimeAndAnyVcpuWillDo) {
  EXPECT_EQ(After({.vcpus = {Vcpu(19, 0)}}, 1, false), Finding::kUnjudged);
  EXPECT_EQ(After({.vcpus = {Vcpu(20, 0)}}, 1, false), Finding::kStarves);
  EXPECT_EQ(After({.vcpus = {Vcpu(9000, 1)}}, 1, false), Finding::kRuns);
  EXPECT_EQ(After({.vcpus = {Vcpu(100, 100), Vcpu(20, 0)}}, 1, false), Finding::kStarves);
  EXPECT_EQ(After({}, 1, false), Finding::kUnjudged);
}

TEST(RunWatch, NeedsThreeSamplesInARow) {
  RunWatch watch(1, 1, 1, false);
  EXPECT_EQ(watch.Observe({.vcpus = {Vcpu(20, 0)}}), Finding::kUnjudged);
  EXPECT_EQ(watch.Observe({.vcpus = {Vcpu(40, 0)}}), Finding::kUnjudged);
  EXPECT_EQ(watch.Observe({.vcpus = {Vcpu(60, 1)}}), Finding::kRuns);
  EXPECT_EQ(watch.Observe({.vcpus = {Vcpu(80, 1)}}), Finding::kRuns);
}

// A rival that comes in the middle of a recording: a second of enabled time without any on the PMU.
TEST(RunWatch, AGroupThatRanAndStoppedIsFound) {
  RunWatch watch(1, 1, 1, false);
  EXPECT_EQ(watch.Observe({.vcpus = {Vcpu(100, 100)}}), Finding::kRuns);
  EXPECT_EQ(watch.Observe({.vcpus = {Vcpu(1099, 100)}}), Finding::kRuns);
  EXPECT_EQ(watch.Observe({.vcpus = {Vcpu(1100, 100)}}), Finding::kUnjudged);
  EXPECT_EQ(watch.Observe({.vcpus = {Vcpu(1100, 100)}}), Finding::kUnjudged);
  EXPECT_EQ(watch.Observe({.vcpus = {Vcpu(1100, 100)}}), Finding::kStarves);
  EXPECT_TRUE(watch.ran_before());
  // A little of it is enough: the counts are scaled.
  EXPECT_EQ(watch.Observe({.vcpus = {Vcpu(1200, 101)}}), Finding::kRuns);
}

// While hot addresses are sampled: neither then nor right after it.
TEST(RunWatch, NothingStarvesOfATimeThatIsPassedOver) {
  RunWatch watch(2, 1, 1, false);
  EXPECT_EQ(watch.Observe({.vcpus = {Vcpu(100, 100), Vcpu(50, 50)}}), Finding::kRuns);
  watch.Observe({.vcpus = {Vcpu(1200, 100), Vcpu(60, 60)}});
  watch.Observe({.vcpus = {Vcpu(1250, 100), Vcpu(60, 60)}});
  watch.PassOver(0, 1300 * kMs);
  for (const uint64_t later : {1300, 1301, 1302, 2299}) {
    EXPECT_EQ(watch.Observe({.vcpus = {Vcpu(later, 100), Vcpu(80, 80)}}), Finding::kRuns) << later;
  }
  watch.Observe({.vcpus = {Vcpu(2300, 100), Vcpu(80, 80)}});
  watch.Observe({.vcpus = {Vcpu(2300, 100), Vcpu(80, 80)}});
  EXPECT_EQ(watch.Observe({.vcpus = {Vcpu(2300, 100), Vcpu(80, 80)}}), Finding::kStarves);
}

// The others of the VM are judged meanwhile, each by its own groups.
TEST(RunWatch, OnlyTheVcpuThatIsPassedOverIsSpared) {
  RunWatch watch(2, 2, 1, true);
  const auto sample = [](uint64_t ms) {
    return core::Sample{.vcpus = {Vcpu(ms, 50), Vcpu(ms, ms)},
                        .further = {Group(ms, ms), Group(ms, 50)}};
  };
  EXPECT_EQ(watch.Observe(sample(50)), Finding::kRuns);
  for (const uint64_t ms : {1100, 1200, 1300}) {
    watch.PassOver(0, ms * kMs);
    const Finding found = watch.Observe(sample(ms));
    EXPECT_EQ(found == Finding::kStarves, ms == 1300) << ms;
  }
  for (const uint64_t ms : {1400, 1500, 1600}) {
    for (const size_t vcpu : {0, 1}) watch.PassOver(vcpu, ms * kMs);
    EXPECT_EQ(watch.Observe(sample(ms)), Finding::kRuns) << ms;
  }
}

// --multiplex of events that fit into one group: nobody takes turns with it.
TEST(RunWatch, OnlyGroupsThatTakeTurnsAreGivenTime) {
  EXPECT_EQ(After({.vcpus = {Vcpu(20, 0)}}, 1, true), Finding::kStarves);
  EXPECT_EQ(After({.vcpus = {Vcpu(999, 0)}, .further = {Group(999, 500)}}, 1, true),
            Finding::kRuns);
  EXPECT_EQ(After({.vcpus = {Vcpu(1000, 0)}, .further = {Group(1000, 500)}}, 1, true),
            Finding::kStarves);
  EXPECT_EQ(After({.vcpus = {Vcpu(1000, 900)}, .further = {Group(1000, 0)}}, 1, true),
            Finding::kStarves);
}

// A thread that stayed on the fast cores is counted; one that neither PMU counted is not. Further
// sets of a hybrid host are watched like the first.
TEST(RunWatch, TheCorePmusOfASetCountAsOne) {
  EXPECT_EQ(After({.vcpus = {Vcpu(100, 100)}, .further = {Group(100, 0)}}, 2, false),
            Finding::kRuns);
  EXPECT_EQ(After({.vcpus = {Vcpu(100, 0)}, .further = {Group(100, 100)}}, 2, false),
            Finding::kRuns);
  EXPECT_EQ(After({.vcpus = {Vcpu(100, 0)}, .further = {Group(100, 0)}}, 2, false),
            Finding::kStarves);
  const auto rotating = [](uint64_t third_ms, uint64_t fourth_ms) {
    return core::Sample{.vcpus = {Vcpu(1000, 500)},
                        .further = {Group(1000, 0), Group(1000, third_ms), Group(1000, fourth_ms)}};
  };
  EXPECT_EQ(After(rotating(0, 3), 2, true), Finding::kRuns);
  EXPECT_EQ(After(rotating(0, 0), 2, true), Finding::kStarves);
}

TEST(RunWatch, EachVcpuHasGroupsOfItsOwn) {
  const auto second_vcpu = [](uint64_t second_ms, uint64_t third_ms) {
    return core::Sample{
        .vcpus = {Vcpu(1000, 500), Vcpu(1000, 500)},
        .further = {Group(1000, 1), Group(1000, 1), Group(1000, second_ms), Group(1000, third_ms)}};
  };
  EXPECT_EQ(After(second_vcpu(1, 1), 1, true), Finding::kRuns);
  EXPECT_EQ(After(second_vcpu(0, 1), 1, true), Finding::kStarves);
  EXPECT_EQ(After(second_vcpu(1, 0), 1, true), Finding::kStarves);
}

constexpr int64_t kSecond = 1'000'000'000;

TEST(ClimbPause, DoublesAfterEachFailedTryUpToTenMinutes) {
  ClimbPause pause;
  int64_t now = 0;
  pause.SteppedDown(now);
  for (const int64_t seconds : {10, 20, 40, 80, 160, 320, 600, 600}) {
    EXPECT_FALSE(pause.IsDue(now + seconds * kSecond - 1)) << seconds;
    now += seconds * kSecond;
    EXPECT_TRUE(pause.IsDue(now)) << seconds;
    pause.Climbed(now);
    pause.SteppedDown(now + kSecond);
    now += kSecond;
  }
}

TEST(ClimbPause, ASetThatHeldStartsAnew) {
  ClimbPause pause;
  pause.SteppedDown(0);
  pause.Climbed(10 * kSecond);
  pause.SteppedDown(11 * kSecond);
  pause.Climbed(31 * kSecond);
  EXPECT_FALSE(pause.IsDue(41 * kSecond - 1));  // the next rung
  EXPECT_TRUE(pause.IsDue(41 * kSecond));
  pause.SteppedDown(51 * kSecond);  // it held for as long as the pause was
  EXPECT_TRUE(pause.IsDue(61 * kSecond));
}

TEST(NextDifferentRung, PassesOverRungsThatWouldOpenTheSame) {
  const auto ladder = kvm::LadderOf({.set = kvm::EventSet::kFull});
  EXPECT_EQ(NextDifferentRung(ladder, 0, 7, {}), 1u);
  // Where the PMU lacks what the sets differ by, those down to "min" are what was open already.
  const std::vector<kvm::AbsentEvent> absent = {{"branches", 2, ""},
                                                {"branch-misses", 2, ""},
                                                {"L1-dcache-load-misses", 2, ""},
                                                {"cache-misses", 2, ""},
                                                {"ref-cycles", 2, ""}};
  EXPECT_EQ(NextDifferentRung(ladder, 0, 2, absent), 5u);
  EXPECT_EQ(ladder[5].name, "cycles");
  EXPECT_EQ(NextDifferentRung(ladder, 5, 1, absent), ladder.size());
}

// A rung that gives up what was absent anyway is no other one.
TEST(NextDifferentRung, WhatIsAbsentCannotBeGivenUp) {
  const auto ladder = kvm::LadderOf({.pause = kvm::Event{.name = "cpu_clk_unhalted.pause"}});
  EXPECT_EQ(NextDifferentRung(ladder, 0, 8, {}), 1u);
  EXPECT_EQ(NextDifferentRung(ladder, 2, 6, {}), 3u);
  const std::vector<kvm::AbsentEvent> absent = {{"cpu_clk_unhalted.pause", 2, ""}};
  EXPECT_EQ(NextDifferentRung(ladder, 2, 5, absent), 4u);
}

TEST(NextDifferentRung, RotatingGroupsMustBecomeSmaller) {
  const auto ladder = kvm::LadderOf({.set = kvm::EventSet::kCore, .multiplex = true});
  const size_t next = NextDifferentRung(ladder, 0, 3, {});
  ASSERT_LT(next, ladder.size());
  EXPECT_EQ(ladder[next].largest_group, 2u);
}

}  // namespace
}  // namespace vcpulse::recorder

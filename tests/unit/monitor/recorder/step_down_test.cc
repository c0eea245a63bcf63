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

TEST(AnyGroupNeverRan, NeedsSomeTimeAndAnyVcpuWillDo) {
  EXPECT_FALSE(AnyGroupNeverRan({.vcpus = {Vcpu(19, 0)}}, 1, false));
  EXPECT_TRUE(AnyGroupNeverRan({.vcpus = {Vcpu(20, 0)}}, 1, false));
  EXPECT_FALSE(AnyGroupNeverRan({.vcpus = {Vcpu(9000, 1)}}, 1, false));
  EXPECT_TRUE(AnyGroupNeverRan({.vcpus = {Vcpu(100, 100), Vcpu(20, 0)}}, 1, false));
  EXPECT_FALSE(AnyGroupNeverRan({}, 1, false));
}

// --multiplex of events that fit into one group: nobody takes turns with it.
TEST(AnyGroupNeverRan, OnlyGroupsThatTakeTurnsAreGivenTime) {
  EXPECT_TRUE(AnyGroupNeverRan({.vcpus = {Vcpu(20, 0)}}, 1, true));
  EXPECT_FALSE(AnyGroupNeverRan({.vcpus = {Vcpu(999, 0)}, .further = {Group(999, 500)}}, 1, true));
  EXPECT_TRUE(AnyGroupNeverRan({.vcpus = {Vcpu(1000, 0)}, .further = {Group(1000, 500)}}, 1, true));
  EXPECT_TRUE(AnyGroupNeverRan({.vcpus = {Vcpu(1000, 900)}, .further = {Group(1000, 0)}}, 1, true));
}

// A thread that stayed on the fast cores is counted; one that neither PMU counted is not. Further
// sets of a hybrid host are watched like the first.
TEST(AnyGroupNeverRan, TheCorePmusOfASetCountAsOne) {
  EXPECT_FALSE(AnyGroupNeverRan({.vcpus = {Vcpu(100, 100)}, .further = {Group(100, 0)}}, 2, false));
  EXPECT_FALSE(AnyGroupNeverRan({.vcpus = {Vcpu(100, 0)}, .further = {Group(100, 100)}}, 2, false));
  EXPECT_TRUE(AnyGroupNeverRan({.vcpus = {Vcpu(100, 0)}, .further = {Group(100, 0)}}, 2, false));
  const auto rotating = [](uint64_t third_ms, uint64_t fourth_ms) {
    return core::Sample{.vcpus = {Vcpu(1000, 500)},
                        .further = {Group(1000, 0), Group(1000, third_ms), Group(1000, fourth_ms)}};
  };
  EXPECT_FALSE(AnyGroupNeverRan(rotating(0, 3), 2, true));
  EXPECT_TRUE(AnyGroupNeverRan(rotating(0, 0), 2, true));
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

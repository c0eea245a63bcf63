#include "monitor/core/delta.h"

#include <gtest/gtest.h>

namespace vcpulse::core {
namespace {

VcpuSample At(int64_t begin_ns, int64_t end_ns) {
  return {.read_begin_ns = begin_ns, .read_end_ns = end_ns};
}

// Reads take time: the instant of a sample is the middle of its read.
TEST(Delta, IntervalIsFromMiddleToMiddle) {
  EXPECT_EQ(Interval(At(1000, 1400), At(5000, 5100)), 5050 - 1200);
  EXPECT_EQ(Subtract(At(1000, 1400), At(5000, 5100)).interval_ns, 3850);
}

TEST(Delta, EverySlotIsSubtracted) {
  VcpuSample earlier{.time_enabled_ns = 10, .time_running_ns = 8};
  VcpuSample later{.time_enabled_ns = 110, .time_running_ns = 58};
  for (size_t i = 0; i < kMaxEvents; ++i) {
    earlier.counts[i] = i;
    later.counts[i] = 100 + 3 * i;
  }
  const VcpuDelta delta = Subtract(earlier, later);
  EXPECT_EQ(delta.time_enabled_ns, 100u);
  EXPECT_EQ(delta.time_running_ns, 50u);
  for (size_t i = 0; i < kMaxEvents; ++i) EXPECT_EQ(delta.counts[i], 100 + 2 * i);
}

// Missing is not zero: one side without scheduler times leaves the difference absent.
TEST(Delta, SchedulerTimesNeedBothSides) {
  VcpuSample earlier{.run_ns = 5, .run_delay_ns = 7, .has_scheduler_times = true};
  VcpuSample later{.run_ns = 15, .run_delay_ns = 70, .has_scheduler_times = true};
  EXPECT_EQ(Subtract(earlier, later).run_ns, 10u);
  EXPECT_EQ(Subtract(earlier, later).run_delay_ns, 63u);
  later.has_scheduler_times = false;
  EXPECT_EQ(Subtract(earlier, later).run_ns, std::nullopt);
  EXPECT_EQ(Subtract(earlier, later).run_delay_ns, std::nullopt);
  later.has_scheduler_times = true;
  earlier.has_scheduler_times = false;
  EXPECT_EQ(Subtract(earlier, later).run_ns, std::nullopt);
}

TEST(Delta, StateIsThatOfTheLaterSample) {
  const VcpuSample earlier{.state = ThreadState::kRunnable};
  const VcpuSample later{.state = ThreadState::kBlocked};
  EXPECT_EQ(Subtract(earlier, later).state, ThreadState::kBlocked);
}

// A value that goes backwards must not become 2^64 - 1 cycles.
TEST(Delta, BackwardsIsNoProgress) {
  VcpuSample earlier{.time_enabled_ns = 100};
  earlier.counts[0] = 50;
  VcpuSample later{.time_enabled_ns = 99};
  later.counts[0] = 49;
  EXPECT_EQ(Subtract(earlier, later).time_enabled_ns, 0u);
  EXPECT_EQ(Subtract(earlier, later).counts[0], 0u);
}

TEST(ScaledCount, ExtrapolatesByEnabledOverRunning) {
  VcpuDelta delta{.time_enabled_ns = 400, .time_running_ns = 100};
  delta.counts[2] = 30;
  EXPECT_EQ(ScaledCount(delta, 2), 120.0);
}

TEST(ScaledCount, IsTheCountItselfWhereTheGroupRanThroughout) {
  VcpuDelta delta{.time_enabled_ns = 400, .time_running_ns = 400};
  delta.counts[0] = 30;
  EXPECT_EQ(ScaledCount(delta, 0), 30.0);
}

// nanobench returns the raw value here, which reads as a measured zero.
TEST(ScaledCount, IsAbsentWhereTheGroupNeverRan) {
  const VcpuDelta delta{.time_enabled_ns = 400, .time_running_ns = 0};
  EXPECT_EQ(ScaledCount(delta, 0), std::nullopt);
}

}  // namespace
}  // namespace vcpulse::core

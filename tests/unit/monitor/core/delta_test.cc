#include "monitor/core/delta.h"

#include <gtest/gtest.h>

namespace vcpulse::core {
namespace {

VcpuSample At(int64_t begin_ns, int64_t end_ns) {
  return {.read_begin_ns = begin_ns, .read_end_ns = end_ns};
}

// Reads take time: the instant of a sample is the middle of its read.
TEST(Subtract, SaysWhatHasNotCountedSinceTheEpochBegan) {
  VcpuSample earlier{.time_running_ns = 10};
  VcpuSample later{.time_running_ns = 30};
  earlier.counts = {5, 0, 0};
  later.counts = {5, 7, 0};
  const VcpuDelta delta = Subtract(earlier, later);
  EXPECT_EQ(delta.ran_since_start_ns, 30u);
  EXPECT_FALSE(delta.NeverCounted(0));
  EXPECT_FALSE(delta.NeverCounted(1));
  EXPECT_TRUE(delta.NeverCounted(2));
  const VcpuDelta sum = AddPmu(delta, {.ran_since_start_ns = 4, .never_counted = 0b011});
  EXPECT_EQ(sum.ran_since_start_ns, 34u);
  EXPECT_EQ(sum.never_counted & 0b111u, 0u);
}

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

constexpr int64_t kMs = 1'000'000;

VcpuSample At(int64_t ns) {
  VcpuSample sample{.read_begin_ns = ns, .read_end_ns = ns};
  sample.counts[0] = static_cast<uint64_t>(ns);
  return sample;
}

std::optional<VcpuDelta> Push(VerdictWindow& window, const VcpuSample& sample) {
  VcpuDelta delta;
  if (!window.Push(sample, delta)) return std::nullopt;
  return delta;
}

TEST(VerdictWindow, LongTicksAreJudgedOneByOne) {
  VerdictWindow window(100 * kMs);
  EXPECT_EQ(Push(window, At(0)), std::nullopt);
  EXPECT_EQ(Push(window, At(100 * kMs))->interval_ns, 100 * kMs);
  EXPECT_EQ(Push(window, At(201 * kMs))->interval_ns, 101 * kMs);
}

// At 1 ms half of the ticks of a shared vCPU see nothing run: ten of them make a verdict.
TEST(VerdictWindow, ShortTicksAreJudgedOverTenMilliseconds) {
  VerdictWindow window(1 * kMs);
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(Push(window, At(i * kMs)), std::nullopt) << i;
  for (int64_t i = 10; i < 100; ++i) {
    const auto delta = Push(window, At(i * kMs));
    ASSERT_TRUE(delta.has_value()) << i;
    EXPECT_EQ(delta->interval_ns, 10 * kMs);
    EXPECT_EQ(delta->counts[0], static_cast<uint64_t>(10 * kMs));
  }
}

// A tick that comes a little early must not stretch the window to one tick more.
TEST(VerdictWindow, ToleratesATickThatIsALittleEarly) {
  VerdictWindow window(10 * kMs);
  Push(window, At(0));
  EXPECT_EQ(Push(window, At(9'600'000))->interval_ns, 9'600'000);
  EXPECT_EQ(Push(window, At(9'600'000 + 9'000'000))->interval_ns, 18'600'000);
}

// After a stall one tick may cover the window alone.
TEST(VerdictWindow, TakesTheShortestSpanThatIsEnough) {
  VerdictWindow window(1 * kMs);
  Push(window, At(0));
  Push(window, At(1 * kMs));
  EXPECT_EQ(Push(window, At(30 * kMs))->interval_ns, 29 * kMs);
}

}  // namespace

}  // namespace vcpulse::core

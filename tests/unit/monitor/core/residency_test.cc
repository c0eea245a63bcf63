#include "monitor/core/residency.h"

#include <gtest/gtest.h>

#include <vector>

namespace vcpulse::core {
namespace {

constexpr EventSlots kCyclesOnly{.cycles = 0, .instructions = 1};
constexpr EventSlots kWithRef{.cycles = 0, .instructions = 1, .ref_cycles = 2};

// 100 ms, all of it on the CPU, at 1 GHz core and 2 GHz TSC.
VcpuDelta Full() {
  VcpuDelta delta{
      .interval_ns = 100'000'000, .time_enabled_ns = 100'000'000, .time_running_ns = 100'000'000};
  delta.counts[0] = 100'000'000;
  delta.counts[2] = 200'000'000;
  return delta;
}

TEST(Residency, RefCyclesOverTscComeFirst) {
  VcpuDelta delta = Full();
  delta.counts[2] = 50'000'000;
  EXPECT_DOUBLE_EQ(*Residency(delta, kWithRef, {.tsc_hz = 2e9, .max_hz = 1e9}), 0.25);
}

// A virtual PMU may open them and count nothing.
TEST(Residency, RefCyclesThatStay0WhileCyclesCountAreNotBelieved) {
  VcpuDelta delta = Full();
  delta.counts[2] = 0;
  const ResidencyBasis basis{.tsc_hz = 2e9, .max_hz = 1e9};
  EXPECT_EQ(Residency(delta, kWithRef, basis), 0.0);  // they have counted before
  EXPECT_TRUE(UsesRefCycles(delta, kWithRef, basis));
  delta.never_counted = 1u << 2;
  EXPECT_FALSE(UsesRefCycles(delta, kWithRef, basis));
  EXPECT_EQ(Residency(delta, kWithRef, basis), 1.0);
  delta.never_counted |= 1u << 0;  // neither has: nothing runs
  EXPECT_TRUE(UsesRefCycles(delta, kWithRef, basis));
}

TEST(Residency, IsUnknownWhereNothingWasEverCounted) {
  VcpuDelta delta = Full();
  delta.counts = {};
  const ResidencyBasis basis{.tsc_hz = 2e9, .max_hz = 1e9};
  delta.ran_since_start_ns = 20'000'000;
  EXPECT_EQ(Residency(delta, kWithRef, basis), 0.0);  // it has counted before
  delta.never_counted = 0b111;
  EXPECT_EQ(Residency(delta, kWithRef, basis), std::nullopt);
  delta.ran_since_start_ns = 19'999'999;
  EXPECT_EQ(Residency(delta, kWithRef, basis), 0.0);
}

TEST(Residency, CyclesGiveALowerBound) {
  const std::vector<VcpuDelta> one = {Full()};
  const std::vector<ResidencyBasis> basis = {{.tsc_hz = 2e9, .max_hz = 4e9}};
  EXPECT_EQ(ResidencyAtMost(one, kWithRef, basis, 0.5), 0.5);
  EXPECT_EQ(ResidencyAtMost(one, kCyclesOnly, basis, 0.25), 1.0);
  EXPECT_EQ(ResidencyAtMost(one, kCyclesOnly, basis, std::nullopt), std::nullopt);
  std::vector<VcpuDelta> half = one;
  half[0].time_enabled_ns = 50'000'000;
  EXPECT_EQ(ResidencyAtMost(half, kCyclesOnly, basis, 0.25), 0.5);
  EXPECT_EQ(ResidencyAtMost(half, kCyclesOnly, basis, 0.75), 0.75);
  // On a hybrid host one PMU without a TSC rate is enough.
  const std::vector<VcpuDelta> two = {half[0], half[0]};
  const std::vector<ResidencyBasis> bases = {{.tsc_hz = 2e9}, {.max_hz = 4e9}};
  EXPECT_EQ(ResidencyAtMost(two, kWithRef, bases, 0.25), 0.5);
  // Bases beyond the PMUs that were counted say nothing, and too few give no bound.
  EXPECT_EQ(ResidencyAtMost(std::span(two).first(1), kCyclesOnly, bases, 0.25), 0.5);
  EXPECT_EQ(ResidencyAtMost(std::span(two).first(1), kWithRef, bases, 0.25), 0.25);
  EXPECT_EQ(ResidencyAtMost(two, kCyclesOnly, std::span(bases).first(1), 0.25), 0.25);
  // Reads are not at the same instants.
  half[0].time_enabled_ns = 100'100'000;
  EXPECT_EQ(ResidencyAtMost(half, kCyclesOnly, basis, 0.25), 1.0);
}

TEST(Residency, CyclesOverTheHighestFrequencyElse) {
  VcpuDelta delta = Full();
  delta.counts[0] = 10'000'000;
  EXPECT_DOUBLE_EQ(*Residency(delta, kWithRef, {.max_hz = 1e9}), 0.1);
  EXPECT_DOUBLE_EQ(*Residency(delta, kCyclesOnly, {.tsc_hz = 2e9, .max_hz = 1e9}), 0.1);
}

// Multiplexed: a quarter of the time on the PMU saw a quarter of the cycles.
TEST(Residency, IsDividedByTheShareOnThePmu) {
  VcpuDelta delta = Full();
  delta.time_running_ns = 25'000'000;
  delta.counts[0] = 20'000'000;
  EXPECT_DOUBLE_EQ(*Residency(delta, kCyclesOnly, {.max_hz = 1e9}), 0.8);
}

TEST(Residency, IsAtMostOne) {
  VcpuDelta delta = Full();
  delta.counts[0] = 130'000'000;
  EXPECT_EQ(Residency(delta, kCyclesOnly, {.max_hz = 1e9}), 1.0);
}

TEST(Residency, OffTheCpuIsAMeasuredZero) {
  const VcpuDelta delta{.interval_ns = 100'000'000};
  EXPECT_EQ(Residency(delta, kCyclesOnly, {.max_hz = 1e9}), 0.0);
}

TEST(Residency, IsAbsentWhereItCannotBeHad) {
  EXPECT_EQ(Residency(Full(), kCyclesOnly, {}), std::nullopt);                // no frequency
  EXPECT_EQ(Residency(Full(), EventSlots{}, {.max_hz = 1e9}), std::nullopt);  // no event
  VcpuDelta never_ran = Full();
  never_ran.time_running_ns = 0;
  EXPECT_EQ(Residency(never_ran, kCyclesOnly, {.max_hz = 1e9}), std::nullopt);
}

// A kernel that counts a little more running than enabled gives no share beyond the whole.
TEST(Residency, TheShareOnThePmuIsAtMostOne) {
  VcpuDelta delta = Full();
  delta.time_running_ns = 101'000'000;
  delta.counts[0] = 50'000'000;
  EXPECT_EQ(Residency(delta, kCyclesOnly, {.max_hz = 1e9}), 0.5);
}

TEST(Residency, RefCyclesAloneAreEnough) {
  VcpuDelta delta = Full();
  EXPECT_EQ(Residency(delta, {.ref_cycles = 2}, {.tsc_hz = 4e9}), 0.5);
}

TEST(Residency, NoIntervalHasNoShare) {
  VcpuDelta delta = Full();
  delta.interval_ns = 0;
  EXPECT_EQ(Residency(delta, kCyclesOnly, {.max_hz = 1e9}), std::nullopt);
  delta.interval_ns = 1;
  EXPECT_EQ(Residency(delta, kCyclesOnly, {.max_hz = 1e9}), 1.0);
}

// Ran 40 of 100 ms on a shared CPU, of which the host polled 20; the group had half of the PMU, so
// it saw half of the guest's 20 ms.
TEST(Residency, IsRightForASharedPolledAndMultiplexedVcpu) {
  VcpuDelta delta{
      .interval_ns = 100'000'000, .time_enabled_ns = 40'000'000, .time_running_ns = 20'000'000};
  delta.counts[0] = 10'000'000;
  delta.counts[2] = 20'000'000;
  EXPECT_DOUBLE_EQ(*Residency(delta, kCyclesOnly, {.max_hz = 1e9}), 0.2);
  EXPECT_DOUBLE_EQ(*Residency(delta, kWithRef, {.tsc_hz = 2e9}), 0.2);
}

// Per time running, not per time elapsed: a vCPU that has half of its CPU still shows its
// frequency.
TEST(ResidencyEstimator, LearnsTheHighestRatePerTimeRunning) {
  ResidencyEstimator estimator({});
  VcpuDelta delta = Full();
  delta.time_enabled_ns = delta.time_running_ns = 50'000'000;
  delta.counts[0] = 50'000'000;
  estimator.Observe(delta, kCyclesOnly);
  EXPECT_DOUBLE_EQ(*estimator.basis().max_hz, 1e9);
  EXPECT_DOUBLE_EQ(*Residency(delta, kCyclesOnly, estimator.basis()), 0.5);
}

TEST(ResidencyEstimator, KeepsTheHighest) {
  ResidencyEstimator estimator(std::vector<ResidencyBasis>{{.max_hz = 2e9}});
  estimator.Observe(Full(), kCyclesOnly);
  EXPECT_DOUBLE_EQ(*estimator.basis().max_hz, 2e9);
}

TEST(ResidencyEstimator, PassesOverRatesThatNoCpuHas) {
  ResidencyEstimator estimator({});
  VcpuDelta idle = Full();
  idle.counts[0] = 10'000'000;  // 100 MHz
  estimator.Observe(idle, kCyclesOnly);
  EXPECT_EQ(estimator.basis().max_hz, std::nullopt);
  idle.counts[0] = 10'000'001;
  estimator.Observe(idle, kCyclesOnly);
  EXPECT_TRUE(estimator.basis().max_hz.has_value());
}

// 10 us on the CPU with one interrupt in it gives any rate.
TEST(ResidencyEstimator, PassesOverWhatRanTooShortly) {
  ResidencyEstimator estimator({});
  VcpuDelta delta = Full();
  delta.time_running_ns = 999'999;
  estimator.Observe(delta, kCyclesOnly);
  EXPECT_EQ(estimator.basis().max_hz, std::nullopt);
  delta.time_running_ns = 1'000'000;
  estimator.Observe(delta, kCyclesOnly);
  EXPECT_NE(estimator.basis().max_hz, std::nullopt);
}

VcpuDelta OnPmu(uint64_t enabled_ns, uint64_t running_ns, uint64_t cycles) {
  VcpuDelta delta{
      .interval_ns = 100'000'000, .time_enabled_ns = enabled_ns, .time_running_ns = running_ns};
  delta.counts[0] = cycles;
  return delta;
}

// 40 ms at 2 GHz and 20 ms at 1 GHz, of 100 ms, both at their PMU's full rate: 0.6.
TEST(ResidencyOfHybrid, EachPmuIsHeldAgainstItsOwnRate) {
  const VcpuDelta deltas[] = {OnPmu(60'000'000, 40'000'000, 80'000'000),
                              OnPmu(60'000'000, 20'000'000, 20'000'000)};
  const ResidencyBasis bases[] = {{.max_hz = 2e9}, {.max_hz = 1e9}};
  EXPECT_DOUBLE_EQ(*Residency(deltas, kCyclesOnly, bases), 0.6);
}

// The groups of both PMUs shared theirs with others: only 30 of the 60 ms on a CPU were counted.
TEST(ResidencyOfHybrid, ScalesByTheTimeOfAllPmus) {
  const VcpuDelta deltas[] = {OnPmu(60'000'000, 20'000'000, 40'000'000),
                              OnPmu(60'000'000, 10'000'000, 10'000'000)};
  const ResidencyBasis bases[] = {{.max_hz = 2e9}, {.max_hz = 1e9}};
  EXPECT_DOUBLE_EQ(*Residency(deltas, kCyclesOnly, bases), 0.6);
}

TEST(ResidencyOfHybrid, IsAbsentWhereAPmuThatRanHasNoRate) {
  const VcpuDelta deltas[] = {OnPmu(60'000'000, 40'000'000, 80'000'000),
                              OnPmu(60'000'000, 20'000'000, 20'000'000)};
  const ResidencyBasis bases[] = {{.max_hz = 2e9}, {}};
  EXPECT_EQ(Residency(deltas, kCyclesOnly, bases), std::nullopt);
  const VcpuDelta fast_only[] = {deltas[0], OnPmu(60'000'000, 0, 0)};
  EXPECT_TRUE(Residency(fast_only, kCyclesOnly, bases).has_value());
}

TEST(ResidencyOfHybrid, RefCyclesAloneAreEnough) {
  VcpuDelta fast = OnPmu(60'000'000, 40'000'000, 0);
  VcpuDelta slow = OnPmu(60'000'000, 20'000'000, 0);
  fast.counts[2] = 40'000'000;
  slow.counts[2] = 20'000'000;
  const VcpuDelta deltas[] = {fast, slow};
  const ResidencyBasis bases[] = {{.tsc_hz = 1e9}, {.tsc_hz = 1e9}};
  EXPECT_DOUBLE_EQ(*Residency(deltas, {.ref_cycles = 2}, bases), 0.6);
  EXPECT_EQ(Residency(deltas, EventSlots{}, bases), std::nullopt);
}

TEST(ResidencyOfHybrid, OffTheCpuIsAMeasuredZeroAndNotCountedIsNone) {
  const ResidencyBasis bases[] = {{.max_hz = 2e9}, {.max_hz = 1e9}};
  const VcpuDelta off[] = {OnPmu(0, 0, 0), OnPmu(0, 0, 0)};
  EXPECT_EQ(Residency(off, kCyclesOnly, bases), 0.0);
  const VcpuDelta not_counted[] = {OnPmu(60'000'000, 0, 0), OnPmu(60'000'000, 0, 0)};
  EXPECT_EQ(Residency(not_counted, kCyclesOnly, bases), std::nullopt);
}

TEST(ResidencyOfHybrid, SharesEndAtOne) {
  const ResidencyBasis bases[] = {{.max_hz = 2e9}, {.max_hz = 1e9}};
  // Both counted a little more running than enabled.
  const VcpuDelta more[] = {OnPmu(50'000'000, 30'000'000, 20'000'000),
                            OnPmu(50'000'000, 30'000'000, 10'000'000)};
  EXPECT_DOUBLE_EQ(*Residency(more, kCyclesOnly, bases), 0.2);
  const VcpuDelta faster[] = {OnPmu(100'000'000, 50'000'000, 120'000'000),
                              OnPmu(100'000'000, 50'000'000, 60'000'000)};
  EXPECT_EQ(Residency(faster, kCyclesOnly, bases), 1.0);
}

// More groups than rates: the PMU beyond them has none.
TEST(ResidencyOfHybrid, APmuWithoutABasisHasNoRate) {
  const VcpuDelta deltas[] = {OnPmu(60'000'000, 40'000'000, 80'000'000),
                              OnPmu(60'000'000, 20'000'000, 20'000'000)};
  const ResidencyBasis bases[] = {{.max_hz = 2e9}};
  EXPECT_EQ(Residency(deltas, kCyclesOnly, bases), std::nullopt);
}

TEST(ResidencyOfHybrid, ABasisThatNoGroupNeedsIsLeftAlone) {
  const VcpuDelta deltas[] = {OnPmu(60'000'000, 40'000'000, 80'000'000),
                              OnPmu(60'000'000, 20'000'000, 20'000'000)};
  const ResidencyBasis bases[] = {{.max_hz = 2e9}, {.max_hz = 1e9}, {.max_hz = 5e9}};
  EXPECT_DOUBLE_EQ(*Residency(deltas, kCyclesOnly, bases), 0.6);
}

TEST(ResidencyOfHybrid, TheRateOfEachPmuIsLearntApart) {
  ResidencyEstimator estimator(std::vector<ResidencyBasis>{{.max_hz = 3e9}});
  estimator.Observe(OnPmu(60'000'000, 20'000'000, 20'000'000), kCyclesOnly, 1);
  EXPECT_EQ(estimator.bases()[0].max_hz, 3e9);
  EXPECT_EQ(estimator.bases()[1].max_hz, 1e9);
}

}  // namespace
}  // namespace vcpulse::core

#include "monitor/core/features.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace vcpulse::core {
namespace {

constexpr EventSlots kFeatureSlots{.cycles = 0,
                                   .instructions = 1,
                                   .branches = 2,
                                   .branch_misses = 3,
                                   .cache_misses = 4,
                                   .ref_cycles = 5,
                                   .pause = 6};

// 100 ms, of which 80 on a CPU and 40 on the PMU; 20 ms of waiting.
VcpuDelta Delta() {
  VcpuDelta delta{.interval_ns = 100'000'000,
                  .time_enabled_ns = 80'000'000,
                  .time_running_ns = 40'000'000,
                  .run_delay_ns = 20'000'000,
                  .state = ThreadState::kRunnable};
  delta.counts = {10'000'000, 5'000'000, 1'000'000, 2'000, 3'000, 0, 50'000};
  return delta;
}

Features Measure(const VcpuDelta& delta, const EventSlots& slots, std::optional<double> residency,
                 std::optional<double> pause_cycles_each) {
  Features features;
  features.Set(Feature::kIpcSpread, 1);  // of the window before: it must not stay
  features.residency = residency;
  Measure(delta, slots, pause_cycles_each, features);
  return features;
}

TEST(Features, AreSharesAndRates) {
  const Features features = Measure(Delta(), kFeatureSlots, 0.7, 140);
  EXPECT_EQ(features.interval_ns, 100'000'000);
  EXPECT_TRUE(features.enabled);
  EXPECT_DOUBLE_EQ(features.enabled_share, 0.8);
  EXPECT_DOUBLE_EQ(features.running_share, 0.5);
  EXPECT_EQ(features.waiting_share, 0.2);
  EXPECT_EQ(features.residency, 0.7);
  EXPECT_EQ(features.state, ThreadState::kRunnable);
  EXPECT_TRUE(features.cycles_counted);
  EXPECT_TRUE(features.instructions_counted);
  EXPECT_EQ(features.Value(Feature::kCycles), 1e7);
  EXPECT_EQ(features.Value(Feature::kIpc), 0.5);
  EXPECT_EQ(features.Value(Feature::kBranchShare), 0.2);
  EXPECT_EQ(features.Value(Feature::kBranchMisses), 0.2);
  EXPECT_EQ(features.Value(Feature::kCacheMisses), 0.3);
  EXPECT_DOUBLE_EQ(*features.Value(Feature::kPauseShare), 0.7);
  EXPECT_EQ(features.Value(Feature::kIpcSpread), std::nullopt);
}

TEST(Features, L1dMissesArePerKilocycle) {
  VcpuDelta delta = Delta();
  delta.counts[7] = 4'000;
  const EventSlots slots{.cycles = 0, .l1d_misses = 7};
  EXPECT_DOUBLE_EQ(*Measure(delta, slots, 0.7, 140).Value(Feature::kL1dMisses), 0.4);
  EXPECT_EQ(FindSlots(std::vector<std::string>{"L1-dcache-load-misses"}).l1d_misses, 0u);
  EXPECT_EQ(FindSlots(std::vector<std::string>{"x", "l1d_cache_refill"}).l1d_misses, 1u);
}

// Of cycles, else of ref-cycles.
TEST(Features, SayWhetherTheClockHasCounted) {
  VcpuDelta delta = Delta();
  delta.ran_since_start_ns = 30'000'000;
  EXPECT_FALSE(Measure(delta, kFeatureSlots, 0.7, 140).never_counted);
  delta.never_counted = 1u << 5;
  EXPECT_FALSE(Measure(delta, kFeatureSlots, 0.7, 140).never_counted);
  EXPECT_TRUE(Measure(delta, {.ref_cycles = 5}, 0.7, 140).never_counted);
  delta.never_counted = 1u << 0;
  EXPECT_TRUE(Measure(delta, kFeatureSlots, 0.7, 140).never_counted);
  EXPECT_EQ(Measure(delta, kFeatureSlots, 0.7, 140).ran_since_start_ns, 30'000'000);
  EXPECT_FALSE(Measure(delta, {.instructions = 1}, 0.7, 140).never_counted);
}

TEST(Features, AbsentEventsHaveNone) {
  const auto without = [](auto EventSlots::* slot) {
    EventSlots slots = kFeatureSlots;
    slots.*slot = {};
    return Measure(Delta(), slots, 0.7, 140);
  };
  EXPECT_EQ(without(&EventSlots::branches).Value(Feature::kBranchShare), std::nullopt);
  EXPECT_EQ(without(&EventSlots::branch_misses).Value(Feature::kBranchMisses), std::nullopt);
  EXPECT_EQ(without(&EventSlots::cache_misses).Value(Feature::kCacheMisses), std::nullopt);
  EXPECT_EQ(without(&EventSlots::pause).Value(Feature::kPauseShare), std::nullopt);
  const Features no_instructions = without(&EventSlots::instructions);
  EXPECT_FALSE(no_instructions.instructions_counted);
  EXPECT_EQ(no_instructions.Value(Feature::kIpc), std::nullopt);
  EXPECT_EQ(no_instructions.Value(Feature::kBranchShare), std::nullopt);
  EXPECT_EQ(no_instructions.Value(Feature::kBranchMisses), 0.2);
  const Features no_cycles = without(&EventSlots::cycles);
  EXPECT_FALSE(no_cycles.cycles_counted);
  EXPECT_EQ(no_cycles.measured, 0u);
}

// Instructions say nothing of cycles where nobody knows how long one PAUSE takes.
TEST(Features, PauseInstructionsNeedTheirCost) {
  EXPECT_EQ(Measure(Delta(), kFeatureSlots, 0.7, std::nullopt).Value(Feature::kPauseShare),
            std::nullopt);
  EXPECT_EQ(Measure(Delta(), kFeatureSlots, 0.7, 1000).Value(Feature::kPauseShare), 1.0);
  VcpuDelta none = Delta();
  none.counts[6] = 0;  // no PAUSE at all takes no cycle
  EXPECT_EQ(Measure(none, kFeatureSlots, 0.7, std::nullopt).Value(Feature::kPauseShare), 0.0);
  EventSlots in_cycles = kFeatureSlots;
  in_cycles.pause_in_cycles = true;
  EXPECT_EQ(Measure(Delta(), in_cycles, 0.7, std::nullopt).Value(Feature::kPauseShare), 0.005);
  EXPECT_EQ(Measure(Delta(), in_cycles, 0.7, 140).Value(Feature::kPauseShare), 0.005);
}

TEST(Features, NothingRunHasNoRates) {
  VcpuDelta off = Delta();
  off.time_running_ns = 0;
  EXPECT_EQ(Measure(off, kFeatureSlots, 0.7, 140).measured, 0u);
  off.time_enabled_ns = 0;
  EXPECT_FALSE(Measure(off, kFeatureSlots, 0.0, 140).enabled);
  EXPECT_EQ(Measure(off, kFeatureSlots, 0.0, 140).running_share, 0);
}

TEST(Features, NoCycleAndNoInstructionDivideNothing) {
  VcpuDelta delta = Delta();
  delta.counts[1] = 0;
  EXPECT_EQ(Measure(delta, kFeatureSlots, 0.7, 140).Value(Feature::kBranchShare), std::nullopt);
  EXPECT_EQ(Measure(delta, kFeatureSlots, 0.7, 140).Value(Feature::kIpc), 0.0);
  delta.counts[0] = 0;
  const Features features = Measure(delta, kFeatureSlots, 0.7, 140);
  EXPECT_EQ(features.Value(Feature::kCycles), 0.0);
  EXPECT_EQ(features.Value(Feature::kBranchMisses), std::nullopt);
}

TEST(Ipc, NeedsBothEventsAndACycle) {
  VcpuDelta delta = Delta();
  EXPECT_EQ(Ipc(delta, kFeatureSlots), 0.5);
  EXPECT_EQ(Ipc(delta, {.cycles = 0}), std::nullopt);
  EXPECT_EQ(Ipc(delta, {.instructions = 1}), std::nullopt);
  delta.counts[0] = 1;
  EXPECT_EQ(Ipc(delta, kFeatureSlots), 5e6);
  delta.counts[0] = 0;
  EXPECT_EQ(Ipc(delta, kFeatureSlots), std::nullopt);
}

TEST(Features, ASingleInstructionAndNanosecondCount) {
  VcpuDelta delta = Delta();
  delta.counts[1] = delta.counts[2] = 1;
  EXPECT_EQ(Measure(delta, kFeatureSlots, 0.7, 140).Value(Feature::kBranchShare), 1.0);
  delta.time_enabled_ns = delta.time_running_ns = 1;
  EXPECT_TRUE(Measure(delta, kFeatureSlots, 0.7, 140).enabled);
  EXPECT_EQ(Measure(delta, kFeatureSlots, 0.7, 140).running_share, 1.0);
}

TEST(Features, SharesEndAtOne) {
  VcpuDelta delta = Delta();
  delta.run_delay_ns = 500'000'000;  // booked now, waited for over five windows
  delta.time_running_ns = 90'000'000;
  const Features features = Measure(delta, kFeatureSlots, 0.7, 140);
  EXPECT_EQ(features.waiting_share, 1.0);
  EXPECT_EQ(features.running_share, 1.0);
  delta.run_delay_ns.reset();
  EXPECT_EQ(Measure(delta, kFeatureSlots, 0.7, 140).waiting_share, std::nullopt);
}

TEST(EventSlots, AreFoundByPerfsNames) {
  const std::vector<std::string> names = {
      "cycles",     "instructions",           "branches", "branch-misses", "cache-misses",
      "ref-cycles", "misc_retired.pause_inst"};
  EXPECT_EQ(FindSlots(names), kFeatureSlots);
  const std::vector<std::string> others = {"cpu_clk_unhalted.pause", "branch-instructions"};
  EXPECT_EQ(FindSlots(others), (EventSlots{.branches = 1, .pause = 0, .pause_in_cycles = true}));
  EXPECT_EQ(FindSlots(std::vector<std::string>{"rob_misc_events.pause_inst"}).pause, 0u);
  EXPECT_EQ(FindSlots(std::vector<std::string>{"pause"}), (EventSlots{.pause = 0}));
  EXPECT_EQ(FindSlots(std::vector<std::string>{"r40cc"}), EventSlots{});
}

}  // namespace
}  // namespace vcpulse::core

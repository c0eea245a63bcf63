// A guest that halts 2,500 times a second, each time for less than KVM polls.

#include <gtest/gtest.h>

#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

// Its thread is on a CPU for most of the time, since the host polls on its behalf.
TEST(Polling, AHaltPolledVcpuIsHaltedWithTheNote) {
  const RecordedTimeline recorded = Load(OutputPath("polling-2", "polling.vpt"));
  const uint32_t number = recorded.NumberOf("polling");
  ASSERT_NE(number, 0u);
  const RecordedVm& vm = recorded.vms.at(number);
  ASSERT_EQ(vm.intervals.size(), 1u);
  EXPECT_GE(vm.IntervalsDue(), 25u);  // of 3 s
  EXPECT_GE(ShareOfTicks(vm, 0,
                         [](const Interval& interval) {
                           const auto& delta = interval.delta;
                           return static_cast<double>(delta.time_enabled_ns) >
                                      0.3 * static_cast<double>(delta.interval_ns) &&
                                  interval.verdict.band == core::Band::kHalted &&
                                  interval.verdict.rule == core::Rule::kPolling;
                         }),
            0.95);
}

}  // namespace
}  // namespace vcpulse::lab

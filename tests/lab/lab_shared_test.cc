// Two vCPUs that work, on a host with one CPU: each wants to run all the time and does so half of
// it.

#include <gtest/gtest.h>

#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

TEST(Shared, BothVcpusAreStarvedAndWaitHalfOfTheTime) {
  const RecordedTimeline recorded = Load(OutputPath("shared-0", "shared.vpt"));
  const uint32_t number = recorded.NumberOf("shared");
  ASSERT_NE(number, 0u);
  const RecordedVm& vm = recorded.vms.at(number);
  ASSERT_EQ(vm.intervals.size(), 2u);
  EXPECT_GE(vm.IntervalsDue(), 95u);  // of 10 s

  for (const auto& [vcpu, intervals] : vm.intervals) {
    EXPECT_GE(ShareOfTicks(vm, vcpu, [](const Interval& i) { return i.verdict.starved; }), 0.95)
        << "vCPU " << vcpu;
    double elapsed_ns = 0;
    double waited_ns = 0;
    for (const Interval& interval : intervals) {
      ASSERT_TRUE(interval.delta.run_delay_ns.has_value());
      elapsed_ns += static_cast<double>(interval.delta.interval_ns);
      waited_ns += static_cast<double>(*interval.delta.run_delay_ns);
    }
    EXPECT_GE(waited_ns / elapsed_ns, 0.45) << "vCPU " << vcpu;
    EXPECT_LE(waited_ns / elapsed_ns, 0.55) << "vCPU " << vcpu;
  }
}

// Neither by the live classifier nor by the other one afterwards.
TEST(Shared, AStarvedVcpuIsNeverHalted) {
  for (const char* file : {"shared.vpt", "evidence.vpt"}) {
    const RecordedTimeline recorded = Load(OutputPath("shared-0", file));
    const uint32_t number = recorded.NumberOf("shared");
    ASSERT_NE(number, 0u);
    ASSERT_EQ(recorded.vms.at(number).intervals.size(), 2u);
    for (const auto& [vcpu, intervals] : recorded.vms.at(number).intervals) {
      ASSERT_GE(intervals.size(), 90u);
      for (const Interval& interval : intervals) {
        EXPECT_NE(interval.verdict.band, core::Band::kHalted) << file << ", vCPU " << vcpu;
        EXPECT_NE(interval.verdict.raw_band, core::Band::kHalted) << file << ", vCPU " << vcpu;
      }
    }
  }
}

}  // namespace
}  // namespace vcpulse::lab

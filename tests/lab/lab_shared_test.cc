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

// Each waits for the other one; how long is what the scheduler says as well.
TEST(Shared, EachVcpuWaitsForTheOtherOne) {
  const RecordedTimeline recorded = Load(OutputPath("shared-0", "shared.vpt"));
  const uint32_t number = recorded.NumberOf("shared");
  ASSERT_NE(number, 0u);
  const v1::VcpuSet& set = recorded.vms.at(number).sets.front();
  ASSERT_EQ(set.vcpus_size(), 2);
  ASSERT_EQ(recorded.competitors.size(), 2u);  // the next ones were due after 11 s
  for (const v1::Competitors& window : recorded.competitors) {
    SCOPED_TRACE(window.ShortDebugString());
    ASSERT_EQ(window.refused(), "");
    EXPECT_EQ(window.ended_by(), "");
    EXPECT_EQ(window.lost(), 0u);
    const double length_ns = static_cast<double>(window.mono_ns() - window.begin_mono_ns());
    EXPECT_GE(length_ns, 1.0e9);
    EXPECT_LE(length_ns, 1.15e9);
    const auto waited_ns = static_cast<double>(window.waited_ns());
    EXPECT_NEAR(waited_ns / length_ns, 0.5, 0.05);
    EXPECT_NEAR(waited_ns / static_cast<double>(window.run_delay_ns()), 1, 0.05);
    EXPECT_LT(static_cast<double>(window.unattributed_ns()), 0.02 * waited_ns);
    ASSERT_GE(window.competitors_size(), 1);
    const v1::Competitor& most = window.competitors(0);
    const int other = set.vcpus(0).index() == window.vcpu_index() ? 1 : 0;
    EXPECT_EQ(most.tid(), set.vcpus(other).tid());
    EXPECT_EQ(most.pid(), set.instance().pid());
    EXPECT_EQ(most.vm_name(), "shared");
    EXPECT_GT(static_cast<double>(most.ns()), 0.9 * waited_ns);
  }
}

}  // namespace
}  // namespace vcpulse::lab

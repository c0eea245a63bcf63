// A guest that halts 2,500 times a second, each time for less than KVM polls.

#include <gtest/gtest.h>

#include <algorithm>

#include "boost/json.hpp"
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

// KVM's own count of its polling explains the time outside of the guest, but for what came after
// the last reading (up to a second).
TEST(Polling, TheTimeOutsideOfTheGuestIsKvmsPolling) {
  const boost::json::value report =
      boost::json::parse(ReadText(OutputPath("polling-2", "json.out")));
  const auto& polling = report.at_pointer("/vms/0/vcpus/0/polling");
  const auto seconds = [&polling](const char* path) {
    return polling.at_pointer(path).to_number<double>();
  };
  EXPECT_GT(seconds("/seconds"), 1.5);
  EXPECT_GE(seconds("/causes/halt-polling"), 0.5 * seconds("/seconds"));
  EXPECT_NEAR(seconds("/causes/halt-polling") + seconds("/not_read_s"), seconds("/seconds"), 0.01);
}

TEST(Polling, TheExplanationOfAWindowNamesIt) {
  const boost::json::value explanation =
      boost::json::parse(ReadText(OutputPath("polling-2", "explain-json.out")));
  const auto& causes = explanation.at_pointer("/counted/causes").as_array();
  EXPECT_NE(std::ranges::find(causes, boost::json::value("halt-polling")), causes.end());
  EXPECT_GT(explanation.at_pointer("/counted/values/halt_poll").to_number<double>(), 500);
}

}  // namespace
}  // namespace vcpulse::lab

// One vCPU that works beside two that are halted, at three speeds of the emulated clock. Under
// icount shift N each instruction takes 2^N ns of a 1 GHz PMU clock, so the IPC is known exactly;
// and perf counted the same.

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <map>
#include <ostream>
#include <sstream>
#include <string>

#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

constexpr uint32_t kWorking = 0;
constexpr uint32_t kHalted[] = {1, 2};
constexpr double kTolerance = 0.01;

struct Clock {
  int shift;
  double ipc;
  core::Band band;
};

void PrintTo(const Clock& clock, std::ostream* out) { *out << "shift " << clock.shift; }

class Bands : public testing::TestWithParam<Clock> {
 protected:
  static std::string Run() { return "bands-" + std::to_string(GetParam().shift); }
};

bool IsNear(double value, double expected) {
  return std::abs(value - expected) <= kTolerance * expected;
}

TEST_P(Bands, WorkingVcpuHasTheIpcOfTheClockAndItsBand) {
  const RecordedTimeline recorded = Load(OutputPath(Run(), "bands.vpt"));
  const uint32_t number = recorded.NumberOf(Run());
  ASSERT_NE(number, 0u);
  const RecordedVm& vm = recorded.vms.at(number);

  EXPECT_GE(vm.IntervalsDue(), 75u);  // of 8 s
  const double share = ShareOfTicks(vm, kWorking, [](const Interval& interval) {
    const auto ipc = core::Ipc(interval.delta, interval.slots);
    return ipc.has_value() && IsNear(*ipc, GetParam().ipc) &&
           interval.verdict.band == GetParam().band;
  });
  EXPECT_GE(share, 0.95);
}

TEST_P(Bands, HaltedVcpusAreHalted) {
  const RecordedTimeline recorded = Load(OutputPath(Run(), "bands.vpt"));
  const uint32_t number = recorded.NumberOf(Run());
  ASSERT_NE(number, 0u);
  for (const uint32_t vcpu : kHalted) {
    const double share = ShareOfTicks(recorded.vms.at(number), vcpu, [](const Interval& interval) {
      return interval.verdict.band == core::Band::kHalted;
    });
    EXPECT_GE(share, 0.99) << "vCPU " << vcpu;
  }
}

// perf stat's counts, by event ("cycles:G").
std::map<std::string, double> OracleCounts(const std::string& path) {
  std::map<std::string, double> counts;
  std::istringstream lines(ReadText(path));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('{')) continue;
    const boost::json::object object = boost::json::parse(line).as_object();
    counts[object.at("event").as_string().c_str()] =
        std::stod(object.at("counter-value").as_string().c_str());
  }
  return counts;
}

// The guest is stopped while either tool starts or ends, so both saw all that it executed in
// between.
TEST_P(Bands, CountsAreThoseOfPerf) {
  const std::map<std::string, double> oracle = OracleCounts(OutputPath(Run(), "oracle.json"));
  ASSERT_TRUE(oracle.contains("cycles:G") && oracle.contains("instructions:G"));
  EXPECT_GT(oracle.at("cycles:G"), 3.0e9);  // 4 s at 1 GHz, less what the host itself used

  const RecordedTimeline recorded = Load(OutputPath(Run(), "oracle.vpt"));
  ASSERT_EQ(recorded.vms.size(), 1u);
  const RecordedVm& vm = recorded.vms.begin()->second;
  ASSERT_EQ(vm.sets.front().vcpus_size(), 1);
  EXPECT_EQ(std::to_string(vm.sets.front().vcpus(0).tid()) + "\n",
            ReadText(OutputPath(Run(), "working.tid")));

  double cycles = 0;
  double instructions = 0;
  for (const auto& [vcpu, intervals] : vm.intervals) {
    for (const Interval& interval : intervals) {
      ASSERT_TRUE(interval.slots.cycles && interval.slots.instructions);
      cycles += static_cast<double>(interval.delta.counts[*interval.slots.cycles]);
      instructions += static_cast<double>(interval.delta.counts[*interval.slots.instructions]);
    }
  }
  EXPECT_NEAR(cycles / oracle.at("cycles:G"), 1, kTolerance);
  EXPECT_NEAR(instructions / oracle.at("instructions:G"), 1, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Clocks, Bands,
                         testing::Values(Clock{0, 1.00, core::Band::kProductive},
                                         Clock{1, 0.50, core::Band::kSpinning},
                                         Clock{2, 0.25, core::Band::kSpinning}),
                         [](const auto& clock) {
                           return "Shift" + std::to_string(clock.param.shift);
                         });

}  // namespace
}  // namespace vcpulse::lab

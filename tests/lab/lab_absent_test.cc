// A PMU that counts cycles and no instructions: the event is absent with its errno, and nowhere a
// zero.

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cerrno>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

TEST(Absent, InstructionsAreAbsentWithEnoent) {
  const RecordedTimeline recorded = Load(OutputPath("absent-none", "absent.vpt"));
  const uint32_t number = recorded.NumberOf("absent");
  ASSERT_NE(number, 0u);
  for (const v1::VcpuSet& set : recorded.vms.at(number).sets) {
    const core::EventSlots slots = core::FindSlots(set.events());
    EXPECT_TRUE(slots.cycles.has_value());
    EXPECT_FALSE(slots.instructions.has_value());
    int found = 0;
    for (const v1::AbsentEvent& absent : set.absent_events()) {
      if (absent.event() != "instructions") continue;
      ++found;
      EXPECT_EQ(absent.error(), ENOENT);
      EXPECT_FALSE(absent.reason().empty());
    }
    EXPECT_EQ(found, 1);
  }
}

// Without the emulated clock this host lives in real time and may miss ticks on a busy machine.
constexpr double kMostTicks = 0.8;

TEST(Absent, WorkingVcpuIsUnknownAndTheOtherHalted) {
  const RecordedTimeline recorded = Load(OutputPath("absent-none", "absent.vpt"));
  const uint32_t number = recorded.NumberOf("absent");
  ASSERT_NE(number, 0u);
  const RecordedVm& vm = recorded.vms.at(number);
  EXPECT_GE(vm.IntervalsDue(), 35u);  // of 4 s
  const auto lacks_instructions = [](const Interval& interval) {
    return interval.verdict.band == core::Band::kUnknown &&
           interval.verdict.rule == core::Rule::kNoInstructions;
  };
  const auto is_halted = [](const Interval& interval) {
    return interval.verdict.band == core::Band::kHalted;
  };
  EXPECT_GE(ShareOfTicks(vm, 0, lacks_instructions), kMostTicks);
  EXPECT_GE(ShareOfTicks(vm, 1, is_halted), kMostTicks);
}

TEST(Absent, ReportShowsNoNumberForInstructions) {
  const boost::json::value report =
      boost::json::parse(ReadText(OutputPath("absent-none", "report-json.out")));
  const boost::json::array& vms = report.at("vms").as_array();
  ASSERT_EQ(vms.size(), 1u);
  for (const boost::json::value& vcpu : vms.front().at("vcpus").as_array()) {
    EXPECT_TRUE(vcpu.at("ipc").is_null());
    const boost::json::object& counts = vcpu.at("counts").as_object();
    EXPECT_TRUE(!counts.contains("instructions") || counts.at("instructions").is_null());
  }
}

// The column "instr" is the last one.
TEST(Absent, TableShowsADashForInstructions) {
  std::istringstream lines(ReadText(OutputPath("absent-none", "report.out")));
  int rows = 0;
  bool in_table = false;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    const std::vector<std::string> row{std::istream_iterator<std::string>(words), {}};
    if (row.empty() || row.front() == "not" || line.find('|') != std::string::npos) {
      in_table = false;
    } else if (row.front() == "vCPU" && row.back() == "instr") {
      in_table = true;
    } else if (in_table) {
      ++rows;
      EXPECT_EQ(row.back(), "-") << line;
    }
  }
  EXPECT_EQ(rows, 2);
}

}  // namespace
}  // namespace vcpulse::lab

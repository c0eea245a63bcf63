#include "monitor/export/event_columns.h"

#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/fixtures/hand_made_recording.h"

namespace vcpulse::exporting {
namespace {

using report::HandMadeRecording;
using ::testing::ElementsAre;

std::vector<std::string> HeadersOf(const EventColumns& columns,
                                   std::vector<std::string_view> others_taken = {}) {
  std::vector<std::string> headers;
  for (const EventColumns::Column& column : columns.Columns(others_taken)) {
    headers.push_back(column.header);
  }
  return headers;
}

TEST(EventColumns, HaveTheNamesOfTheImport) {
  EventColumns columns;
  columns.Add(HandMadeRecording::Set(1, 1, {1},
                                     {"r1e", "cache-misses", "cpu_clk_unhalted.pause", "cycles"}));
  columns.Add(HandMadeRecording::Set(2, 1, {1}, {"cycles", "branch-instructions", "ref-cycles"}));
  EXPECT_THAT(HeadersOf(columns), ElementsAre("cycles", "branches", "cache_misses", "ref_cycles",
                                              "pause_cycles", "r1e"));
}

TEST(EventColumns, NoTwoHaveOneName) {
  EventColumns columns;
  columns.Add(HandMadeRecording::Set(
      1, 1, {1}, {"run-ns", "branches", "branch-instructions", "a-b", "a_b", "tick"}));
  EXPECT_THAT(HeadersOf(columns, {"tick", "run_ns"}),
              ElementsAre("branches", "event:run-ns", "branch-instructions", "a-b", "event:a_b",
                          "event:tick"));
}

TEST(EventColumns, AnEventThatTakesTurnsHasAShare) {
  v1::VcpuSet set = HandMadeRecording::Set(1, 1, {1});
  set.add_further_groups()->add_events("r1e");
  EventColumns columns;
  columns.Add(set);
  EXPECT_THAT(HeadersOf(columns),
              ElementsAre("cycles", "instructions", "r1e", "r1e_counted_share"));
}

}  // namespace
}  // namespace vcpulse::exporting

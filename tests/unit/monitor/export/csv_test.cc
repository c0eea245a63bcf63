#include "monitor/export/csv.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/import/column_names.h"
#include "monitor/import/csv_reader.h"
#include "monitor/import/csv_table.h"
#include "monitor/timeline/reader.h"
#include "tests/unit/fixtures/hand_made_recording.h"
#include "tests/unit/fixtures/live_recording.h"

namespace vcpulse::exporting {
namespace {

using replay::LiveRecording;
using report::HandMadeRecording;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

using Row = std::map<std::string, std::string>;

Sink Into(std::string& text) {
  return [&text](std::string_view more) {
    text += more;
    return absl::OkStatus();
  };
}

// By the names of the columns.
std::vector<Row> Parse(const std::string& text) {
  importing::WholeText source(text);
  importing::CsvReader reader(source);
  std::vector<std::string> header;
  std::vector<std::string> cells;
  std::vector<Row> rows;
  EXPECT_TRUE(reader.Next(header).value_or(false));
  while (reader.Next(cells).value_or(false)) {
    EXPECT_EQ(cells.size(), header.size());
    Row row;
    for (size_t i = 0; i < cells.size(); ++i) row[header[i]] = cells[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

timeline::Entry TickOf(uint32_t vm, const core::Sample& now, const core::Sample* before) {
  timeline::TickEntry tick{.vm = vm, .epoch = 1, .sample = now};
  tick.verdicts.resize(now.vcpus.size());
  tick.previous = before;
  return {.sequence = 3, .record = tick};
}

// A vCPU that counted 1, 2, 3, ... in 100 ms.
struct Samples {
  core::Sample before;
  core::Sample now;

  Samples() {
    before.vcpus = {{.read_begin_ns = 1000, .read_end_ns = 2000}};
    now = before;
    now.tick = 7;
    now.vcpus[0].read_begin_ns += 100'000'000;
    now.vcpus[0].read_end_ns += 100'000'000;
    now.vcpus[0].time_enabled_ns = 100'000'000;
    now.vcpus[0].time_running_ns = 100'000'000;
    for (size_t i = 0; i < core::kMaxEvents; ++i) now.vcpus[0].counts[i] = i + 1;
  }
};

std::vector<Row> RowsOf(const std::vector<v1::VcpuSet>& sets) {
  std::string text;
  CsvExport exporter(Into(text));
  EXPECT_TRUE(exporter.Add({.sequence = 1, .record = HandMadeRecording::Session()}).ok());
  for (const v1::VcpuSet& set : sets) {
    EXPECT_TRUE(exporter.Add({.sequence = 2, .record = set}).ok());
  }
  const Samples samples;
  for (const v1::VcpuSet& set : sets) {
    EXPECT_TRUE(exporter.Add(TickOf(set.vm(), samples.now, &samples.before)).ok());
  }
  EXPECT_TRUE(exporter.Finish().ok());
  return Parse(text);
}

TEST(CsvExport, ARowHasItsCells) {
  v1::VcpuSet set = HandMadeRecording::Set(3, 1, {2001});
  set.mutable_instance()->set_name("a,\"b\"");
  set.mutable_instance()->set_uuid("0-1");
  set.mutable_vcpus(0)->set_kvm_id(0);
  set.add_absent_events()->set_event("cache-misses");
  const std::vector<Row> rows = RowsOf({set});
  ASSERT_THAT(rows, SizeIs(1));
  const Row expected = {{"t_ns", "100001500"},
                        {"t_wall_ns", ""},
                        {"dt_ns", "100000000"},
                        {"tick", "7"},
                        {"vm", "a,\"b\""},
                        {"vm_number", "3"},
                        {"vm_pid", "1003"},
                        {"vm_uuid", "0-1"},
                        {"epoch", "1"},
                        {"vcpu", "0"},
                        {"tid", "2001"},
                        {"kvm_id", "0"},
                        {"cycles", "1"},
                        {"instructions", "2"},
                        {"cache_misses", ""},
                        {"time_enabled_ns", "100000000"},
                        {"time_running_ns", "100000000"},
                        {"run_ns", ""},
                        {"run_delay_ns", ""},
                        {"state", ""},
                        {"residency", "0.00000001"},
                        {"ipc", "2"},
                        {"cache_miss_rate", ""},
                        {"ghz", "0.00000001"},
                        {"branch_miss_rate", ""},
                        {"migrations", ""},
                        {"preemptions", ""},
                        {"exits", ""},
                        {"halt_exits", ""},
                        {"io_exits", ""},
                        {"signal_exits", ""},
                        {"hypercalls", ""},
                        {"wfe_exits", ""},
                        {"halt_poll", ""},
                        {"numa_remote", ""},
                        {"smt_shared", ""},
                        {"band", ""},
                        {"raw_band", ""},
                        {"rule", ""},
                        {"confidence", ""},
                        {"starved", ""}};
  EXPECT_EQ(rows[0], expected);
}

// What one VM asked for and another did not is empty in the rows of the other.
TEST(CsvExport, ColumnsHoldForAllSets) {
  const auto rows = RowsOf({HandMadeRecording::Set(1, 1, {1}, {"cycles", "r1e"}),
                            HandMadeRecording::Set(2, 1, {1}, {"r2e", "cycles"})});
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].at("cycles"), "1");
  EXPECT_EQ(rows[0].at("r1e"), "2");
  EXPECT_EQ(rows[0].at("r2e"), "");
  EXPECT_EQ(rows[1].at("cycles"), "2");
  EXPECT_EQ(rows[1].at("r1e"), "");
  EXPECT_EQ(rows[1].at("r2e"), "1");
}

// An event's name may be that of a column.
TEST(CsvExport, NoTwoColumnsHaveOneName) {
  const auto rows =
      RowsOf({HandMadeRecording::Set(1, 1, {1}, {"cycles", "run-ns", "ipc", "band"})});
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].at("event:run-ns"), "2");
  EXPECT_EQ(rows[0].at("event:ipc"), "3");
  EXPECT_EQ(rows[0].at("event:band"), "4");
  EXPECT_EQ(rows[0].at("run_ns"), "");
}

TEST(CsvExport, VmsOfOneNameStayApart) {
  std::vector<v1::VcpuSet> sets;
  for (const uint32_t vm : {1, 2, 3}) {
    sets.push_back(HandMadeRecording::Set(vm, 1, {1}));
    sets.back().mutable_instance()->set_name(vm == 3 ? "" : "web");
  }
  const auto rows = RowsOf(sets);
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[0].at("vm"), "web");
  EXPECT_EQ(rows[1].at("vm"), "web (VM 2)");
  EXPECT_EQ(rows[2].at("vm"), "VM 3");
}

TEST(CsvExport, AnEventAfterTheHeaderIsRefusedUnlessItWasExpected) {
  for (const bool expected : {false, true}) {
    std::string text;
    CsvExport exporter(Into(text));
    const v1::VcpuSet late = HandMadeRecording::Set(2, 1, {1}, {"cycles", "r1e"});
    if (expected) exporter.Expect(late);
    ASSERT_TRUE(exporter.Add({.sequence = 1, .record = HandMadeRecording::Session()}).ok());
    ASSERT_TRUE(exporter.Add({.sequence = 2, .record = HandMadeRecording::Set(1, 1, {1})}).ok());
    const Samples samples;
    ASSERT_TRUE(exporter.Add(TickOf(1, samples.now, &samples.before)).ok());
    const absl::Status status = exporter.Add({.sequence = 4, .record = late});
    EXPECT_EQ(status.ok(), expected) << status;
    if (!expected) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("export from a file"));
    }
  }
}

TEST(CsvExport, WithoutARowThereIsAHeader) {
  std::string text;
  CsvExport exporter(Into(text));
  ASSERT_TRUE(exporter.Finish().ok());
  EXPECT_THAT(text, ::testing::StartsWith("t_ns,t_wall_ns,dt_ns,tick,vm,"));
  EXPECT_THAT(text, ::testing::EndsWith(",starved\n"));
}

// Further groups have shares of their own; groups of other core PMUs add up and have none.
TEST(CsvExport, SharesOfEventsThatTakeTurns) {
  for (const auto groups : {LiveRecording::Groups::kInTurns, LiveRecording::Groups::kCorePmus}) {
    LiveRecording live(100'000'000, groups);
    live.Begin({.vm = 1, .epoch = 1, .vcpus = 1});
    live.Run(20);
    live.End("duration");
    std::string text;
    CsvExport exporter(Into(text));
    const auto read = timeline::ReadTimelineBytes(
        timeline::Concatenate(live.chunks()),
        [&](const timeline::Entry& entry) { return exporter.Add(entry); });
    ASSERT_TRUE(read.ok());
    ASSERT_TRUE(exporter.Finish().ok());
    EXPECT_THAT(Parse(text), SizeIs(19));
    EXPECT_THAT(text.substr(0, text.find('\n')), Not(HasSubstr("counted_share")));
  }
}

// The import knows each of its columns again, and its values.
TEST(CsvExport, IsATableOfTheImport) {
  const auto rows = [] {
    std::string text;
    CsvExport exporter(Into(text));
    LiveRecording live(100'000'000, LiveRecording::Groups::kOne);
    live.Begin({.vm = 1, .epoch = 1, .vcpus = 2});
    live.Run(20);
    live.End("duration");
    EXPECT_TRUE(timeline::ReadTimelineBytes(
                    timeline::Concatenate(live.chunks()),
                    [&](const timeline::Entry& entry) { return exporter.Add(entry); })
                    .ok());
    EXPECT_TRUE(exporter.Finish().ok());
    return text;
  }();
  const auto table = importing::ParseCsv(rows, "x.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<Row> cells = Parse(rows);
  ASSERT_THAT(table->rows, SizeIs(19 * 2));
  for (size_t i = 0; i < cells.size(); ++i) {
    for (const importing::Field field : {importing::Field::kT, importing::Field::kDt,
                                         importing::Field::kVcpu, importing::Field::kTimeEnabled}) {
      const auto value = table->rows[i].Value(field);
      EXPECT_EQ(value ? std::to_string(*value) : "",
                cells[i].at(std::string(importing::ColumnName(field))));
    }
  }
}

}  // namespace
}  // namespace vcpulse::exporting

#include "monitor/import/csv_table.h"

#include <gtest/gtest.h>

#include <ctime>

#include "kvm/base/text.h"
#include "monitor/import/column_names.h"
#include "monitor/import/csv_reader.h"
#include "monitor/metric/metric.h"
#include "tests/unit/monitor/import/csv_fixture.h"

namespace vcpulse::importing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::vector<std::string>> Cells(std::string_view text) {
  WholeText source(text);
  CsvReader reader(source);
  std::vector<std::vector<std::string>> all;
  std::vector<std::string> cells;
  while (true) {
    const auto more = reader.Next(cells);
    if (!more.ok()) all.push_back({std::string(more.status().message())});
    if (!more.ok() || !*more) return all;
    all.push_back(cells);
  }
}

TEST(CsvTable, NamesOfColumnsMayHaveBlanksAndPerfsHyphens) {
  const auto table = ParseCsv("t_ns, branch-misses ,other name\n1,2,3\n", "x.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->CountOf(table->rows.at(0), table->FindEvent("branch-misses")), 2u);
  EXPECT_THAT(table->ignored, testing::ElementsAre("other name"));
}

TEST(CsvReader, TakesRfc4180) {
  EXPECT_THAT(Cells("a,b\r\n\"1,\"\"x\"\"\r\n\",2\n"),
              ElementsAre(ElementsAre("a", "b"), ElementsAre("1,\"x\"\r\n", "2")));
  EXPECT_THAT(Cells("a,b\n,"), ElementsAre(ElementsAre("a", "b"), ElementsAre("", "")));
  EXPECT_THAT(Cells("\"\""), ElementsAre(ElementsAre("")));
  EXPECT_THAT(Cells("\xEF\xBB\xBF"
                    "a\n1"),
              ElementsAre(ElementsAre("a"), ElementsAre("1")));
  EXPECT_TRUE(Cells("").empty());
  EXPECT_TRUE(Cells("\n\r\n").empty());
}

TEST(CsvReader, RefusesWhatIsNone) {
  EXPECT_THAT(Cells("a\n\"x"),
              ElementsAre(ElementsAre("a"), ElementsAre("row 2: a quoted cell that does not end")));
  EXPECT_THAT(Cells("\"x\"y"), ElementsAre(ElementsAre("row 1: 'y' after a closing quote")));
  EXPECT_THAT(Cells("x\"y"),
              ElementsAre(ElementsAre("row 1: a quote inside the cell that begins with 'x'")));
  EXPECT_THAT(Cells("a\rb"),
              ElementsAre(ElementsAre("row 1: a carriage return without a line feed")));
}

// An editor's line numbers, as long as no quoted cell holds a line end.
TEST(CsvReader, EmptyLinesCount) {
  WholeText source("\na\r\n\r\n\nb\n");
  CsvReader reader(source);
  std::vector<std::string> cells;
  ASSERT_TRUE(*reader.Next(cells));
  EXPECT_EQ(reader.row(), 2u);
  ASSERT_TRUE(*reader.Next(cells));
  EXPECT_EQ(reader.row(), 5u);
  EXPECT_FALSE(*reader.Next(cells));
}

TEST(CsvReader, BoundsCellsAndRows) {
  const std::string most(kMaxCellBytes, 'x');
  EXPECT_THAT(Cells(most), ElementsAre(ElementsAre(most)));
  EXPECT_THAT(Cells("\"" + most + "\""), ElementsAre(ElementsAre(most)));
  const std::string refusal = "row 1: a cell of more than 4096 bytes";
  EXPECT_THAT(Cells(most + "x"), ElementsAre(ElementsAre(refusal)));
  EXPECT_THAT(Cells("\"" + most + "x\""), ElementsAre(ElementsAre(refusal)));
  EXPECT_THAT(Cells(std::string(kMaxCells, ',')),
              ElementsAre(ElementsAre("row 1: more than 1024 cells")));
}

TEST(CsvTable, ReadsColumnsByName) {
  const auto table = ParseCsv("state,cycles,vm,t_ns,vcpu\nS,12,a,5,3\n", "x.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows.size(), 1u);
  const Row& row = table->rows.front();
  EXPECT_EQ(row.number, 2u);
  EXPECT_EQ(table->vms.at(row.vm).name, "a");
  EXPECT_EQ(row.Value(Field::kVcpu), 3u);
  EXPECT_EQ(row.Value(Field::kT), 5u);
  EXPECT_EQ(table->CountOf(row, table->FindEvent("cycles")), 12u);
  EXPECT_EQ(row.state, core::ThreadState::kBlocked);
  EXPECT_EQ(row.Value(Field::kDt), std::nullopt);
}

TEST(CsvTable, AnEmptyCellIsAbsentAndAZeroIsNot) {
  const auto table = ParseCsv("t_ns,cycles,instructions,vm\n5,0,,\n", "x.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  const Row& row = table->rows.front();
  EXPECT_EQ(table->CountOf(row, table->FindEvent("cycles")), 0u);
  EXPECT_EQ(table->CountOf(row, table->FindEvent("instructions")), std::nullopt);
  EXPECT_EQ(table->vms.at(row.vm).name, "csv");
}

TEST(CsvTable, EveryState) {
  using core::ThreadState;
  const std::vector<std::pair<std::string, ThreadState>> states = {
      {"", ThreadState::kNotRead},          {"S", ThreadState::kBlocked},
      {"D", ThreadState::kIoWait},          {"I", ThreadState::kBlocked},
      {"R", ThreadState::kRunnable},        {"T", ThreadState::kStopped},
      {"t", ThreadState::kStopped},         {"Z", ThreadState::kExited},
      {"X", ThreadState::kExited},          {"blocked", ThreadState::kBlocked},
      {"runnable", ThreadState::kRunnable}, {"stopped", ThreadState::kStopped},
      {"paused", ThreadState::kPaused},     {"exited", ThreadState::kExited},
      {"io-wait", ThreadState::kIoWait}};
  for (const auto& [text, state] : states) {
    const auto table = ParseCsv("t_ns,state\n5," + text + "\n", "x.csv");
    ASSERT_TRUE(table.ok()) << text;
    EXPECT_EQ(table->rows.front().state, state) << text;
  }
  EXPECT_THAT(Refusal("t_ns,state\n5,running\n"),
              HasSubstr("x.csv: row 2, column state: 'running' is none of S D I R T t Z X"));
}

TEST(CsvTable, NamesWhatItIgnores) {
  const auto table = ParseCsv("t_ns,foo,cycles,Cycles\n5,x,1,y\n", "x.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->ignored, ElementsAre("foo", "Cycles"));
}

TEST(CsvTable, KeepsFurtherColumns) {
  const std::vector<std::string_view> keep = {"label", "absent"};
  const auto table = ParseCsv("t_ns,label\n5,x\n6,y\n", "x.csv", keep);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Kept(0, 0), "x");
  EXPECT_EQ(table->Kept(1, 0), "y");
  EXPECT_EQ(table->Kept(1, 1), "");
  EXPECT_TRUE(table->ignored.empty());
}

TEST(CsvTable, RefusesValuesWithRowAndColumn) {
  EXPECT_EQ(Refusal("t_ns,cycles\n5,1\n\n6,12x\n"),
            "x.csv: row 4, column cycles: '12x' is not a whole number");
  EXPECT_EQ(Refusal("t_ns,cycles\n5,-1\n"),
            "x.csv: row 2, column cycles: '-1' is not a whole number");
  EXPECT_EQ(Refusal("t_ns,cycles\n5, 1\n"),
            "x.csv: row 2, column cycles: ' 1' is not a whole number");
  EXPECT_EQ(Refusal("t_ns,cycles\n5,1e9\n"),
            "x.csv: row 2, column cycles: '1e9' is not a whole number");
  EXPECT_EQ(Refusal("t_ns,dt_ns,cycles\n5,1,18446744073709551615\n"), "");
  EXPECT_EQ(Refusal("t_ns,cycles\n5,18446744073709551616\n"),
            "x.csv: row 2, column cycles: '18446744073709551616' is beyond 2^64");
  EXPECT_EQ(Refusal("t_ns,cycles\n4611686018427387904,1\n"),
            "x.csv: row 2, column t_ns: '4611686018427387904' is beyond 2^62 ns");
  EXPECT_EQ(Refusal("t_ns,dt_ns\n5,0\n"),
            "x.csv: row 2, column dt_ns: an interval must be longer than 0");
  EXPECT_EQ(Refusal("t_ns,vcpu\n5,16384\n"), "x.csv: row 2, column vcpu: '16384' is beyond 16383");
}

// Rows that are each of another VM, in no order: 4.5 MB of them took more than a minute.
TEST(CsvTable, ManyVmsTakeLittleTime) {
  constexpr uint32_t kVms = 100'000;
  std::string text = "t_ns,dt_ns,vm,vcpu\n";
  for (uint32_t i = 0; i < kVms; ++i) text += "5,1,v" + std::to_string(i) + ",0\n";
  const std::clock_t begin = std::clock();
  const auto table = ParseCsv(text, "x.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->vms.size(), kVms);
  EXPECT_LT(std::clock() - begin, 3 * CLOCKS_PER_SEC);
}

TEST(CsvTable, RefusesShapes) {
  EXPECT_EQ(Refusal(""), "x.csv: empty: a header with the names of its columns is needed");
  EXPECT_EQ(Refusal("t_ns,cycles\n"), "x.csv: holds no row but the header");
  EXPECT_EQ(Refusal("t_ns,cycles\n5\n"), "x.csv: row 2: 1 cell where the header names 2");
  EXPECT_EQ(Refusal("t_ns,cycles\n5,6,7\n"), "x.csv: row 2: 3 cells where the header names 2");
  EXPECT_EQ(Refusal("t_ns,x,x\n5,6,7\n"), "x.csv: row 1: two columns are named 'x'");
  EXPECT_THAT(Refusal("5,6\n7,8\n"), HasSubstr("is it a header?"));
  EXPECT_THAT(Refusal("cycles\n8\n"), HasSubstr("has neither t_ns"));
}

// What is shown of a cell is safe for a terminal, and short.
TEST(CsvTable, QuotesForPeople) {
  EXPECT_EQ(Quoted("a\x1b[2J\n"), "'a?[2J?'");
  EXPECT_EQ(Quoted(std::string(41, 'x')), "'" + std::string(40, 'x') + "...'");
}

// The rule that README and --help tell: what perf knows, and what is written as only events are.
TEST(ColumnNames, EventsInAnyFile) {
  for (const char* name : {"cycles", "L1-dcache-load-misses", "task-clock", "r01a8", "r0x1a8",
                           "kvm:kvm_exit", "armv8_pmuv3/inst_retired/", "cpu/event=0x3c,umask=0x1/",
                           "misc_retired.pause_inst", "cycles:u"}) {
    EXPECT_TRUE(IsEventName(name, false)) << name;
  }
}

TEST(ColumnNames, OtherWordsAreEventsInAnExportAlone) {
  for (const char* name : {"foo", "i1", "label", "Cycles", "brAnches", "read", "foo:u"}) {
    EXPECT_FALSE(IsEventName(name, false)) << name;
    EXPECT_TRUE(IsEventName(name, true)) << name;
  }
}

TEST(ColumnNames, NeverAnEvent) {
  const std::string longest(256, 'x');
  EXPECT_TRUE(IsEventName(longest, true));
  for (const std::string& name : {std::string(), std::string("two words"), std::string("a,b"),
                                  std::string("{a}"), std::string("a\x1b"), longest + "x"}) {
    EXPECT_FALSE(IsEventName(name, true)) << name;
  }
}

TEST(ColumnNames, FieldsOfBothFormats) {
  EXPECT_EQ(FieldOfColumn("t_ns"), Field::kT);
  EXPECT_EQ(FieldOfKey("t_mono_ns"), Field::kT);
  EXPECT_EQ(FieldOfKey("interval_s"), Field::kDt);
  EXPECT_EQ(FieldOfColumn("run_delay_ns"), Field::kRunDelay);
  EXPECT_EQ(FieldOfKey("t_ns"), std::nullopt);
}

TEST(ColumnNames, WhatIsDerived) {
  EXPECT_TRUE(IsDerived("raw_band"));
  EXPECT_FALSE(IsDerived("cycles"));
  for (const metric::Info& info : metric::Table()) {
    const bool is_of_a_verdict = info.key == "confidence" || info.key == "starved";
    EXPECT_EQ(IsDerived(info.key), info.row_decimals > 0 || is_of_a_verdict) << info.key;
  }
}

TEST(ColumnNames, AnEventsPrefixMayComeTwice) {
  EXPECT_EQ(WithoutEventPrefix("event:band"), "band");
  EXPECT_EQ(WithoutEventPrefix("event:event:band"), "band");
  EXPECT_EQ(WithoutEventPrefix("event:"), "event:");
}

}  // namespace

}  // namespace vcpulse::importing

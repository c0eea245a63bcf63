#include "monitor/import/csv_table.h"
#include "tests/unit/monitor/import/csv_fixture.h"

namespace vcpulse::importing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

Imported In(const std::string& text) {
  Imported in;
  auto table = ParseJsonl(text, "x.jsonl");
  EXPECT_TRUE(table.ok()) << table.status();
  if (table.ok()) in.table = *std::move(table);
  return in;
}

std::string Error(const std::string& text) {
  return std::string(ParseJsonl(text, "x.jsonl").status().message());
}

TEST(JsonlTable, EveryKey) {
  const Imported in =
      In(R"({"t_mono_ns":500,"t_wall_ns":1700,"interval_s":1e-7,"tick":3,"vm":2,"vm_name":"a",)"
         R"("vm_pid":11,"vm_start_time":12,"vm_uuid":"u","epoch":4,"vcpu":5,"tid":6,"kvm_id":7,)"
         R"("cycles":18446744073709551615,"i1":9,"kvm:kvm_exit":null,"time_enabled_ns":90,)"
         R"("time_running_ns":80,"run_ns":70,"run_delay_ns":60,"state":"blocked","residency":0.5,)"
         R"("ipc":1,"cache_miss_rate":null,"band":"halted","raw_band":"halted","rule":"x",)"
         R"("confidence":1,"starved":false})");
  ASSERT_EQ(in.table.rows.size(), 1u);
  const Row& row = in.table.rows[0];
  EXPECT_EQ(row.Value(Field::kT), 500u);
  EXPECT_EQ(row.Value(Field::kDt), 100u);
  EXPECT_EQ(row.Value(Field::kWall), 1700u);
  EXPECT_EQ(row.Value(Field::kTick), 3u);
  EXPECT_EQ(row.Value(Field::kEpoch), 4u);
  EXPECT_EQ(row.Value(Field::kVcpu), 5u);
  EXPECT_EQ(row.Value(Field::kTid), 6u);
  EXPECT_EQ(row.Value(Field::kKvmId), 7u);
  EXPECT_EQ(row.Value(Field::kTimeEnabled), 90u);
  EXPECT_EQ(row.Value(Field::kTimeRunning), 80u);
  EXPECT_EQ(row.Value(Field::kRun), 70u);
  EXPECT_EQ(row.Value(Field::kRunDelay), 60u);
  EXPECT_EQ(row.state, core::ThreadState::kBlocked);
  EXPECT_EQ(in.table.vms.at(0), (VmIdentity{"a", "u", 2, 11, 12}));
  EXPECT_THAT(in.CountsOf("cycles"), ElementsAre(Optional(18446744073709551615u)));
  EXPECT_THAT(in.CountsOf("i1"), ElementsAre(Optional(9u)));
  EXPECT_THAT(in.CountsOf("kvm:kvm_exit"), ElementsAre(std::nullopt));
  EXPECT_THAT(in.table.layouts.at(0).absent, ElementsAre(2));
  EXPECT_THAT(in.table.ignored, IsEmpty());
}

// Every length of an interval is exact: export writes the shortest text of ns / 1e9.
TEST(JsonlTable, LengthsAreExact) {
  for (const auto& [text, ns] :
       std::vector<std::pair<std::string, uint64_t>>{{"0.1", 100'000'000},
                                                     {"0.100000001", 100'000'001},
                                                     {"0.099999999", 99'999'999},
                                                     {"86400.123456789", 86'400'123'456'789},
                                                     {"1E-9", 1},
                                                     {"2", 2'000'000'000}}) {
    const Imported in = In(R"({"interval_s":)" + text + R"(,"cycles":1})");
    EXPECT_EQ(in.table.rows.at(0).Value(Field::kDt), ns) << text;
  }
}

// A dataframe makes 5.0 of 5 where another row has none.
TEST(JsonlTable, WholeNumbersWithAPoint) {
  EXPECT_THAT(In(R"({"interval_s":1,"cycles":5.0})").CountsOf("cycles"), ElementsAre(Optional(5u)));
  EXPECT_THAT(Error(R"({"interval_s":1,"cycles":5.5})"),
              HasSubstr("x.jsonl: line 1, key cycles: no whole number"));
}

TEST(JsonlTable, Refusals) {
  EXPECT_THAT(Error(""), HasSubstr("holds no line"));
  EXPECT_THAT(Error("{\"interval_s\":1,\"cycles\":1}\nfoo\n"), HasSubstr("line 2: no JSON object"));
  EXPECT_THAT(Error("{\"interval_s\":1,\"cycles\":1\n{}\n"), HasSubstr("line 1: no JSON object"));
  EXPECT_THAT(Error(R"({"cycles":1})"), HasSubstr("neither t_mono_ns nor interval_s"));
  EXPECT_THAT(Error(R"({"interval_s":1,"cycles":-1})"), HasSubstr("no whole number"));
  EXPECT_THAT(Error(R"({"interval_s":1,"cycles":"1"})"), HasSubstr("no whole number"));
  EXPECT_THAT(Error(R"({"interval_s":-1})"), HasSubstr("key interval_s: no length"));
  EXPECT_THAT(Error(R"({"interval_s":0})"), HasSubstr("must be longer than 0"));
  EXPECT_THAT(Error(R"({"interval_s":1,"vcpu":16384})"), HasSubstr("beyond 16383"));
  EXPECT_THAT(Error(R"({"interval_s":1,"state":"running"})"), HasSubstr("is none of blocked"));
  EXPECT_THAT(Error(R"({"interval_s":1,"vm_name":5})"), HasSubstr("key vm_name: no text"));
  EXPECT_THAT(Error(R"({"interval_s":1,"counted_share":5})"), HasSubstr("counted_share"));
  EXPECT_THAT(Error(R"({"interval_s":1,"cycles":1,"counted_share":{"cycles":2}})"),
              HasSubstr("has no share from 0 to 1"));
}

// Of an export that was killed.
TEST(JsonlTable, ALastLineThatWasCutOff) {
  const Imported in = In("{\"interval_s\":1,\"cycles\":1}\n{\"interval_s\":1,\"cyc");
  EXPECT_EQ(in.table.rows.size(), 1u);
  ASSERT_EQ(in.table.skipped.size(), 1u);
  EXPECT_EQ(in.table.skipped[0].first, 2u);
}

// What a line takes beyond the reader's buffer is given back: each such line took twice as much as
// the one before, until there was none.
TEST(JsonlTable, LongLinesTakeMemoryOnce) {
  std::string list = "[0";
  for (int i = 0; i < 20'000; ++i) list += ",0";
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += "{\"t_mono_ns\":" + std::to_string(i + 1) + ",\"x\":" + list + "]}\n";
  }
  const auto table = ParseJsonl(text, "x.jsonl");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->rows.size(), 60u);
}

TEST(JsonlTable, OtherKeysAreTold) {
  const Imported in =
      In("{\"interval_s\":1,\"cycles\":1,\"foo\":{\"a\":[1]}}\n"
         "{\"cycles\":2,\"foo\":1,\"interval_s\":1,\"r1a8\":4}\n");
  EXPECT_THAT(in.table.ignored, ElementsAre("foo"));
  EXPECT_THAT(in.CountsOf("cycles"), ElementsAre(Optional(1u), Optional(2u)));
  EXPECT_THAT(in.CountsOf("r1a8"), ElementsAre(std::nullopt, Optional(4u)));
}

// Events whose shares were always the same are one group; one with another share is not.
TEST(JsonlTable, GroupsThatTakeTurns) {
  const Imported in =
      In("{\"interval_s\":1,\"cycles\":1,\"r1\":2,\"r2\":3,\"r3\":4,"
         "\"counted_share\":{\"r1\":0.5,\"r2\":0.5,\"r3\":0.5},"
         "\"time_enabled_ns\":1000,\"time_running_ns\":1000}\n"
         "{\"interval_s\":1,\"cycles\":1,\"r1\":2,\"r2\":3,\"r3\":null,"
         "\"counted_share\":{\"r1\":0.25,\"r2\":0.25,\"r3\":0},"
         "\"time_enabled_ns\":1000,\"time_running_ns\":1000}\n");
  EXPECT_THAT(in.table.turns, ElementsAre(0, 1, 1, 2));
  EXPECT_EQ(in.table.layouts.size(), 1u);  // r3 had no turn: it is not absent
  EXPECT_THAT(in.table.shares, ElementsAre(1, 0.5, 0.5, 0.5, 1, 0.25, 0.25, 0));
}

// A group that was never on the PMU counts nothing, and is no other set of events.
TEST(JsonlTable, NotCountedIsNoChangeOfEvents) {
  Imported in;
  ImportTableInto(ParseJsonl("{\"interval_s\":0.1,\"cycles\":null,\"r1\":null,\"r9\":null,"
                             "\"time_enabled_ns\":90,\"time_running_ns\":0}\n"
                             "{\"interval_s\":0.1,\"cycles\":7,\"r1\":8,\"r9\":null,"
                             "\"time_enabled_ns\":90,\"time_running_ns\":90}\n"
                             "{\"interval_s\":0.1,\"cycles\":null,\"r1\":null,\"r9\":null,"
                             "\"time_enabled_ns\":90,\"time_running_ns\":0}\n",
                             "x.jsonl"),
                  in);
  EXPECT_EQ(in.report.epochs, 1u);
  const auto deltas = in.Deltas(1, 1);
  ASSERT_EQ(deltas.size(), 3u);
  for (const size_t i : {0u, 2u}) {
    EXPECT_EQ(deltas[i].time_running_ns, 0u);
    EXPECT_EQ(deltas[i].counts[0], 0u);
  }
  EXPECT_EQ(deltas[1].counts[1], 8u);
}

}  // namespace
}  // namespace vcpulse::importing

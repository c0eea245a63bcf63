#include "monitor/import/importer.h"

#include "tests/unit/monitor/import/csv_fixture.h"

namespace vcpulse::importing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> EventsOf(const v1::VcpuSet& set) {
  return {set.events().begin(), set.events().end()};
}

std::vector<uint32_t> VcpusOf(const v1::VcpuSet& set) {
  std::vector<uint32_t> vcpus;
  for (const v1::Vcpu& vcpu : set.vcpus()) vcpus.push_back(vcpu.index());
  return vcpus;
}

TEST(CsvImport, OneRowOfEverything) {
  Imported in;
  ImportText(
      "t_ns,dt_ns,vm,vcpu,cycles,instructions,branches,branch_misses,cache_misses,ref_cycles,"
      "pause,pause_cycles,time_enabled_ns,time_running_ns,run_ns,run_delay_ns,state\n"
      "500,100,a,3,1,2,3,4,5,6,7,8,90,80,70,60,R\n",
      in);
  const auto sets = in.writer.VcpuSets();
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].instance().name(), "a");
  EXPECT_THAT(VcpusOf(sets[0]), ElementsAre(3));
  EXPECT_EQ(sets[0].event_set(), "custom");
  EXPECT_THAT(EventsOf(sets[0]),
              ElementsAre("cycles", "instructions", "branches", "branch-misses", "cache-misses",
                          "ref-cycles", "pause", "cpu_clk_unhalted.pause"));
  EXPECT_EQ(sets[0].classifier(), "evidence");
  EXPECT_THAT(sets[0].notes(), IsEmpty());

  ASSERT_EQ(in.writer.ticks.size(), 2u);
  EXPECT_EQ(in.writer.ticks[0].sample.wake_ns, 400);
  EXPECT_EQ(in.writer.ticks[1].sample.wake_ns, 500);
  const core::VcpuDelta expected{.interval_ns = 100,
                                 .time_enabled_ns = 90,
                                 .time_running_ns = 80,
                                 .counts = {1, 2, 3, 4, 5, 6, 7, 8},
                                 .ran_since_start_ns = 80,
                                 .run_ns = 70,
                                 .run_delay_ns = 60,
                                 .state = core::ThreadState::kRunnable};
  EXPECT_THAT(in.Deltas(1, 1), ElementsAre(expected));
}

TEST(CsvImport, SamplesOfAllVmsAreInOrderOfTime) {
  Imported in;
  ImportText("t_ns,dt_ns,vm,cycles\n200,100,a,1\n200,100,b,1\n300,100,a,1\n300,100,b,1\n", in);
  std::vector<int64_t> instants;
  for (const auto& tick : in.writer.ticks) instants.push_back(tick.sample.wake_ns);
  EXPECT_THAT(instants, ElementsAre(100, 100, 200, 200, 300, 300));
}

// A damaged chunk costs at most a hundred ticks.
TEST(CsvImport, ALongFileIsManyChunks) {
  std::string rows = "dt_ns,cycles\n";
  for (int row = 0; row < 1050; ++row) rows += "100000000,8\n";
  const auto table = ParseCsv(rows, "x.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  size_t chunks = 0;
  const auto writer = timeline::NewChunkWriter({}, [&chunks](std::span<const uint8_t>) {
    ++chunks;
    return absl::OkStatus();
  });
  ASSERT_TRUE(ImportTable(*table, {}, *writer).ok());
  EXPECT_EQ(chunks, 11u);
}

// As a dataframe writes whole numbers of a column with empty cells.
TEST(CsvImport, AWholeNumberMayHaveZerosBehindItsPoint) {
  Imported in;
  ImportText("t_ns,dt_ns,cycles\n300,100.0,30000.0\n400,100,\n", in);
  EXPECT_EQ(in.Deltas(1, 1).at(0).counts[0], 30000u);
}

TEST(CsvImport, RowsThatJoinAreOneEpoch) {
  Imported in;
  ImportText("t_ns,dt_ns,cycles\n300,100,3\n100,100,1\n200,100,2\n", in);
  EXPECT_EQ(in.report.epochs, 1u);
  const auto deltas = in.Deltas(1, 1);
  ASSERT_EQ(deltas.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(deltas[i].counts[0], i + 1);
}

// Whether an interval's length was given or found is no matter of its counts.
TEST(CsvImport, ALengthThatIsMissingIsNoOtherEpoch) {
  Imported in;
  ImportText("t_ns,dt_ns,vcpu,cycles\n100,100,0,1\n200,,0,2\n,100,,3\n", in);
  EXPECT_EQ(in.report.epochs, 1u);
  EXPECT_EQ(in.Deltas(1, 1).size(), 3u);
}

TEST(CsvImport, RowsOfOneInstantAreOneTick) {
  Imported in;
  ImportText(
      "t_ns,dt_ns,vm,vcpu,cycles\n"
      "100,100,a,1,1\n100,100,a,0,2\n100,100,b,0,3\n200,100,a,0,4\n200,100,a,1,5\n",
      in);
  EXPECT_EQ(in.report.ticks, 2u);
  EXPECT_EQ(in.report.vms, 2u);
  EXPECT_EQ(in.report.vcpus, 3u);
  const auto sets = in.writer.VcpuSets();
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_THAT(VcpusOf(sets[0]), ElementsAre(0, 1));
  EXPECT_EQ(in.Deltas(1, 1, 0).at(1).counts[0], 4u);
  EXPECT_EQ(in.Deltas(1, 1, 1).at(1).counts[0], 5u);
  EXPECT_EQ(in.Deltas(2, 1).at(0).counts[0], 3u);
}

TEST(CsvImport, VmsAreNumberedAsTheyAppear) {
  Imported in;
  ImportText("t_ns,dt_ns,vm,cycles\n200,100,b,2\n100,100,a,1\n", in);
  EXPECT_EQ(in.Deltas(1, 1).at(0).counts[0], 2u);
  EXPECT_EQ(in.Deltas(2, 1).at(0).counts[0], 1u);
}

TEST(CsvImport, OtherCellsAreAnotherEpoch) {
  Imported in;
  ImportText("t_ns,dt_ns,cycles,instructions\n100,100,1,1\n200,100,2,\n300,100,3,3\n", in);
  const auto sets = in.writer.VcpuSets();
  ASSERT_EQ(sets.size(), 3u);
  EXPECT_THAT(EventsOf(sets[1]), ElementsAre("cycles"));
  ASSERT_EQ(sets[1].absent_events_size(), 1);
  EXPECT_EQ(sets[1].absent_events(0).event(), "instructions");
  EXPECT_EQ(sets[1].classifier(), "ipc-bands");
  EXPECT_EQ(in.Deltas(1, 2).at(0).counts[0], 2u);
  EXPECT_THAT(in.writer.ended, ElementsAre(std::pair(1u, 1u), std::pair(1u, 2u)));
}

TEST(CsvImport, OtherCellsInOneTickAreEpochsSideBySide) {
  Imported in;
  ImportText(
      "t_ns,dt_ns,vcpu,cycles,instructions\n"
      "100,100,0,1,1\n100,100,1,2,\n100,100,2,3,3\n200,100,0,4,4\n200,100,1,5,\n200,100,2,6,6\n",
      in);
  const auto sets = in.writer.VcpuSets();
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_THAT(VcpusOf(sets[0]), ElementsAre(0, 2));
  EXPECT_THAT(VcpusOf(sets[1]), ElementsAre(1));
  EXPECT_EQ(in.Deltas(1, 1, 1).at(1).counts[0], 6u);
  EXPECT_EQ(in.Deltas(1, 2).at(1).counts[0], 5u);
}

// A vCPU without a row in one tick: the others go on in an epoch of their own.
TEST(CsvImport, AMissingRowIsAChangeOfTheSet) {
  Imported in;
  ImportText(
      "t_ns,dt_ns,vcpu,cycles\n100,100,0,1\n100,100,1,1\n200,100,0,1\n300,100,0,1\n300,100,1,1\n",
      in);
  const auto sets = in.writer.VcpuSets();
  ASSERT_EQ(sets.size(), 3u);
  EXPECT_THAT(VcpusOf(sets[1]), ElementsAre(0));
  EXPECT_THAT(VcpusOf(sets[2]), ElementsAre(0, 1));
  EXPECT_EQ(in.report.intervals, 5u);
}

TEST(CsvImport, AHoleBetweenIntervalsIsAnotherEpoch) {
  const auto epochs = [](int64_t second_t_ns) {
    Imported in;
    ImportText(
        "t_ns,dt_ns,cycles\n50000000,50000000,1\n" + std::to_string(second_t_ns) + ",50000000,1\n",
        in);
    return in.report.epochs;
  };
  // 1 % of 50 ms is 500 us.
  EXPECT_EQ(epochs(100'500'000), 1u);
  EXPECT_EQ(epochs(100'500'001), 2u);
  EXPECT_EQ(epochs(99'500'000), 1u);  // begins a little early: stamps blur
}

TEST(CsvImport, ShortIntervalsMayBeOffBy100Us) {
  const auto epochs = [](int64_t second_t_ns) {
    Imported in;
    ImportText(
        "t_ns,dt_ns,cycles\n1000000,1000000,1\n" + std::to_string(second_t_ns) + ",1000000,1\n",
        in);
    return in.report.epochs;
  };
  EXPECT_EQ(epochs(2'100'000), 1u);
  EXPECT_EQ(epochs(2'100'001), 2u);
}

// A sum that went around would read as no progress.
TEST(CsvImport, ASumBeyond64BitsIsAnotherEpoch) {
  Imported in;
  ImportText("dt_ns,cycles\n100,18446744073709551615\n100,1\n", in);
  EXPECT_EQ(in.report.epochs, 2u);
  EXPECT_EQ(in.Deltas(1, 1).at(0).counts[0], 18446744073709551615u);
  EXPECT_EQ(in.Deltas(1, 2).at(0).counts[0], 1u);
}

TEST(CsvImport, NoCyclesButOtherCounts) {
  Imported in;
  ImportText("dt_ns,instructions,branches\n100000000,5,6\n", in);
  const auto sets = in.writer.VcpuSets();
  EXPECT_THAT(EventsOf(sets.at(0)), ElementsAre("instructions", "branches"));
  EXPECT_EQ(in.Deltas(1, 1).at(0).counts[1], 6u);
  EXPECT_EQ(in.writer.ticks.back().verdicts[0].rule, core::Rule::kNoCounters);
}

TEST(CsvImport, NoCounterAtAllIsDegraded) {
  Imported in;
  ImportText("dt_ns,run_ns,run_delay_ns,state\n100000000,0,0,S\n100000000,9,0,\n", in);
  const auto sets = in.writer.VcpuSets();
  EXPECT_EQ(sets.at(0).event_set(), "degraded");
  EXPECT_THAT(sets.at(0).events(), IsEmpty());
  EXPECT_EQ(in.writer.records.at(0).session().residency_method(),
            v1::RESIDENCY_METHOD_TIME_ENABLED);
  EXPECT_NE(in.writer.records.at(0).session().degraded_reason(), "");
  EXPECT_EQ(in.writer.ticks.at(1).verdicts[0].band, core::Band::kHalted);
}

// Waiting is what tells a starved vCPU from a halted one: it is kept where run_ns is absent.
TEST(CsvImport, RunDelayAloneIsKept) {
  Imported in;
  ImportText("dt_ns,cycles,time_enabled_ns,run_delay_ns\n100,1,5,90\n", in);
  EXPECT_EQ(in.Deltas(1, 1).at(0).run_delay_ns, 90u);
  EXPECT_EQ(in.Deltas(1, 1).at(0).run_ns, 5u);
  EXPECT_TRUE(std::ranges::any_of(in.report.substitutions, [](const std::string& text) {
    return text.starts_with("run_ns is absent");
  }));
}

// A state is that of an instant, and says nothing of the interval before it.
TEST(CsvImport, RowsThatSayNothingAreLeftOutAndCounted) {
  Imported in;
  ImportText("dt_ns,cycles,state\n100,1,\n100,,S\n100,1,\n", in);
  EXPECT_EQ(in.report.says_nothing, 1u);
  EXPECT_EQ(in.report.intervals, 2u);
}

TEST(CsvImport, SchedulerTimesNeedTheDelay) {
  Imported in;
  ImportText("dt_ns,cycles,run_ns\n100,1,7\n", in);
  EXPECT_EQ(in.Deltas(1, 1).at(0).run_ns, std::nullopt);
  EXPECT_FALSE(in.writer.ticks.back().sample.vcpus[0].has_scheduler_times);
  Imported both;
  ImportText("dt_ns,cycles,run_ns,run_delay_ns\n100,1,7,0\n", both);
  EXPECT_EQ(both.Deltas(1, 1).at(0).run_ns, 7u);
  EXPECT_EQ(both.Deltas(1, 1).at(0).run_delay_ns, 0u);
}

TEST(CsvImport, SubstitutionsAreSaidOnce) {
  Imported in;
  ImportText("dt_ns,vm,cycles\n100,a,1\n100,b,1\n100,a,1\n", in);
  EXPECT_EQ(in.report.substitutions.size(), 2u);
  for (const v1::VcpuSet& set : in.writer.VcpuSets()) EXPECT_EQ(set.notes_size(), 2);
}

TEST(CsvImport, TheSessionSaysWhatResidencyIs) {
  const auto method = [](std::string_view columns, std::optional<double> tsc_hz,
                         std::optional<double> max_hz) {
    Imported in;
    ImportText(std::string("dt_ns,") + std::string(columns) + "\n100,1" +
                   (columns.find(',') == std::string_view::npos ? "" : ",1") + "\n",
               in, {.tsc_hz = tsc_hz, .max_hz = max_hz});
    return in.writer.records.at(0).session().residency_method();
  };
  EXPECT_EQ(method("cycles,ref_cycles", 2e9, 3e9), v1::RESIDENCY_METHOD_REF_CYCLES);
  EXPECT_EQ(method("cycles,ref_cycles", {}, 3e9), v1::RESIDENCY_METHOD_MAX_FREQUENCY);
  EXPECT_EQ(method("cycles", 2e9, 3e9), v1::RESIDENCY_METHOD_MAX_FREQUENCY);
  EXPECT_EQ(method("cycles", {}, {}), v1::RESIDENCY_METHOD_HIGHEST_RATE);
  EXPECT_EQ(method("instructions", 2e9, 3e9), v1::RESIDENCY_METHOD_UNSPECIFIED);
  EXPECT_EQ(method("time_enabled_ns", 2e9, 3e9), v1::RESIDENCY_METHOD_TIME_ENABLED);
  EXPECT_EQ(method("ref_cycles", 2e9, {}), v1::RESIDENCY_METHOD_REF_CYCLES);
}

TEST(CsvImport, RecordsInOrder) {
  Imported in;
  ImportText("dt_ns,cycles\n100,1\n300,1\n100,1\n", in,
             {.classifier = core::ClassifierChoice::kIpcBands, .tool_version = "1.2"});
  const auto& records = in.writer.records;
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].session().tool_version(), "1.2");
  EXPECT_EQ(records[0].session().interval_ns(), 100u);
  EXPECT_EQ(records[0].session().classifier().name(), "ipc-bands");
  EXPECT_EQ(records[0].session().classifier().profile(), "generic");
  EXPECT_EQ(records[0].session().host_name(), "");
  EXPECT_EQ(records[1].profile().name(), "generic");
  EXPECT_TRUE(records[2].has_vcpu_set());
  EXPECT_EQ(records[3].summary().vcpu_samples(), 3u);
}

TEST(CsvImport, Verdicts) {
  Imported in;
  ImportText(
      "dt_ns,cycles,instructions,branches,branch_misses,time_enabled_ns,state\n"
      "100000000,250000000,500000000,100000000,500000,99000000,\n"
      "100000000,0,0,0,0,0,S\n",
      in, {.max_hz = 2.6e9});
  ASSERT_EQ(in.writer.ticks.size(), 3u);
  EXPECT_EQ(in.writer.ticks[0].verdicts[0].band, core::Band::kNone);
  EXPECT_EQ(in.writer.ticks[1].verdicts[0].band, core::Band::kProductive);
  EXPECT_EQ(in.writer.ticks[2].verdicts[0].band, core::Band::kHalted);
}

TEST(CsvImport, RowsThatOnlyBegin) {
  Imported in;
  ImportText("t_ns,cycles\n100,1\n200,2\n", in);
  EXPECT_EQ(in.report.only_begin, 1u);
  EXPECT_EQ(in.report.intervals, 1u);
  EXPECT_EQ(in.Deltas(1, 1).at(0).counts[0], 2u);
  EXPECT_THAT(Refusal("t_ns,cycles\n100,1\n"), HasSubstr("no interval"));
}

}  // namespace
}  // namespace vcpulse::importing

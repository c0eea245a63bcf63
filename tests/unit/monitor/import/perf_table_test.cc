// What perf stat wrote, as a table and as the timeline made of it. The files in
// tests/data/perf-json are the real perf's, from the lab's emulated host (tools/lab run perfjson).
#include <fstream>
#include <iterator>

#include "monitor/import/perf_json.h"
#include "tests/unit/monitor/import/csv_fixture.h"

namespace vcpulse::importing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;

void ImportPerf(const std::string& text, Imported& in) {
  ImportTableInto(ParsePerfJson(text, "x.json"), in);
}

void ImportSample(const std::string& name, Imported& in) {
  std::ifstream file(VCPULSE_TEST_DATA "/perf-json/" + name, std::ios::binary);
  ASSERT_TRUE(file) << name;
  ImportPerf(std::string((std::istreambuf_iterator<char>(file)), {}), in);
}

// One line of perf's; the share is of the time enabled.
std::string Line(double t, const std::string& thread, const std::string& event,
                 const std::string& value, uint64_t running = 0, const char* percent = "100.00") {
  const std::string who = thread.empty() ? "" : "\"thread\" : \"" + thread + "\", ";
  return "{\"interval\" : " + std::to_string(t) + ", " + who + "\"counter-value\" : \"" + value +
         "\", \"unit\" : \"\", \"event\" : \"" + event +
         "\", \"event-runtime\" : " + std::to_string(running) + ", \"pcnt-running\" : " + percent +
         "}\n";
}

std::vector<std::string> TableEventsOf(const v1::VcpuSet& set) {
  return {set.events().begin(), set.events().end()};
}

TEST(PerfTable, ThreadsOfTwoVms) {
  Imported in;
  ImportSample("threads.json", in);
  EXPECT_EQ(in.report.vms, 2u);
  EXPECT_EQ(in.report.vcpus, 4u);
  EXPECT_EQ(in.report.epochs, 2u);
  EXPECT_EQ(in.report.ticks, 5u);
  const auto sets = in.writer.VcpuSets();
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_THAT(TableEventsOf(sets[0]), ElementsAre("cycles", "instructions"));
  EXPECT_EQ(sets[0].vcpus_size(), 3);
  EXPECT_EQ(sets[0].vcpus(1).tid(), 107u);
  EXPECT_EQ(sets[1].vcpus(0).tid(), 173u);
  EXPECT_EQ(sets[0].instance().name(), "perf-1");
  ASSERT_EQ(sets[0].absent_events_size(), 1);
  EXPECT_EQ(sets[0].absent_events(0).event(), "cache-misses");
  EXPECT_THAT(sets[0].absent_events(0).reason(), HasSubstr("<not supported>"));
  // perf's first lines, by eye.
  const core::VcpuDelta first = in.Deltas(1, 1, 0).at(0);
  EXPECT_EQ(first.counts[0], 64508508u);
  EXPECT_EQ(first.counts[1], 32254254u);
  EXPECT_EQ(first.time_enabled_ns, 64908560u);
  EXPECT_EQ(first.time_running_ns, 64908560u);
  EXPECT_EQ(first.interval_ns, 200230816);
  EXPECT_EQ(in.Deltas(2, 1, 0).at(1).counts[0], 67727116u);
  // The halted vCPU was off its CPU throughout.
  for (const core::VcpuDelta& delta : in.Deltas(1, 1, 2)) EXPECT_EQ(delta.time_enabled_ns, 0u);
}

TEST(PerfTable, EventsThatTakeTurns) {
  Imported in;
  ImportSample("turns.json", in);
  const auto sets = in.writer.VcpuSets();
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_THAT(TableEventsOf(sets[0]), ElementsAre("cycles", "instructions"));
  EXPECT_EQ(sets[0].further_groups_size(), 7);
  EXPECT_EQ(sets[0].further_groups(6).events_size(), 2);  // i7 and i8 share the last one
  EXPECT_THAT(in.table.notes, Contains(HasSubstr("perf's extrapolations")));
  // 43884560 ns were 64 to 65 % of it, by cycles; i4 of vCPU 1 and others narrow it down.
  const uint64_t enabled = in.Deltas(1, 1, 0).at(0).time_enabled_ns;
  EXPECT_GT(enabled, 43884560u / 0.65);
  EXPECT_LT(enabled, 43884560u / 0.64);
  EXPECT_EQ(in.Deltas(1, 1, 0).at(0).counts[0], 66878987u);
  EXPECT_EQ(in.Deltas(1, 1, 0).at(0).time_running_ns, enabled);
}

TEST(PerfTable, ATotalThatCountsTheHost) {
  Imported in;
  ImportSample("total.json", in);
  const auto sets = in.writer.VcpuSets();
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_THAT(TableEventsOf(sets[0]), ElementsAre("cycles:H", "instructions:u", "task-clock"));
  EXPECT_EQ(sets[0].host_side_events_size(), 3);
  EXPECT_THAT(in.table.notes, Contains(HasSubstr("cycles, instructions:u: counts the host too")));
  // No residency of a guest is claimed, and no verdict.
  EXPECT_EQ(in.writer.records.at(0).session().residency_method(),
            v1::RESIDENCY_METHOD_TIME_ENABLED);
  EXPECT_EQ(in.writer.ticks.at(1).verdicts[0].rule, core::Rule::kNoCounters);
  EXPECT_THAT(in.CountsOf("task-clock").at(0), Optional(68'895'248u));
  ASSERT_EQ(in.table.skipped.size(), 1u);
  EXPECT_EQ(in.table.skipped[0].lines, 5u);  // of the workload
}

TEST(PerfTable, CpusOfTheHost) {
  Imported in;
  ImportSample("cpus.json", in);
  EXPECT_EQ(in.table.vms.at(0).name, "host-cpus");
  EXPECT_THAT(in.table.notes, ElementsAre(HasSubstr("CPUs of the host")));
  EXPECT_EQ(in.Deltas(1, 1).at(0).counts[0], 196680964u);
}

TEST(PerfTable, NotCountedIsNeverZero) {
  Imported in;
  ImportPerf(Line(0.1, "CPU 0/KVM-1", "cycles:G", "7", 90'000'000) +
                 Line(0.2, "CPU 0/KVM-1", "cycles:G", "<not counted>", 0, "0.00") +
                 Line(0.3, "CPU 0/KVM-1", "cycles:G", "<not counted>", 0, "100.00"),
             in);
  EXPECT_EQ(in.report.epochs, 1u);
  const auto deltas = in.Deltas(1, 1);
  ASSERT_EQ(deltas.size(), 3u);
  // Not on the PMU, for the whole interval since nothing tells less: not counted.
  EXPECT_EQ(deltas[1].time_enabled_ns, 100'000'000u);
  EXPECT_EQ(deltas[1].time_running_ns, 0u);
  EXPECT_EQ(in.writer.ticks.at(2).verdicts[0].rule, core::Rule::kNotCounted);
  // Off its CPU: nothing was there to be counted.
  EXPECT_EQ(deltas[2].time_enabled_ns, 0u);
}

// One event had no turn while another counted: it is none of those that were counted then.
TEST(PerfTable, AnEventWithoutItsTurn) {
  Imported in;
  std::string text;
  for (int i = 1; i <= 2; ++i) {
    text += Line(i, "CPU 0/KVM-1", "cycles:G", "100", 400'000'000, "50.00");
    text += i == 1 ? Line(i, "CPU 0/KVM-1", "r1:G", "9", 300'000'000, "37.00")
                   : Line(i, "CPU 0/KVM-1", "r1:G", "<not counted>", 0, "0.00");
  }
  ImportPerf(text, in);
  const auto sets = in.writer.VcpuSets();
  ASSERT_EQ(sets.size(), 1u);
  ASSERT_EQ(sets[0].further_groups_size(), 1);
  EXPECT_EQ(sets[0].further_groups(0).events(0), "r1");
  const core::Sample& last = in.writer.ticks.back().sample;
  const core::Sample& before = in.writer.ticks.at(1).sample;
  EXPECT_EQ(before.further.at(0).counts[0], 9u);
  EXPECT_EQ(before.further.at(0).time_running_ns, before.further.at(0).time_enabled_ns);
  EXPECT_GT(last.further.at(0).time_enabled_ns, before.further.at(0).time_enabled_ns);
  EXPECT_EQ(last.further.at(0).time_running_ns, before.further.at(0).time_running_ns);
}

// In a group perf's times are the same to the nanosecond; shares alike are no proof.
TEST(PerfTable, AGroupIsTold) {
  const auto events = [](uint64_t instructions_ns) {
    Imported in;
    ImportPerf(Line(1, "CPU 0/KVM-1", "cycles:G", "1", 500'000'000, "50.00") +
                   Line(1, "CPU 0/KVM-1", "instructions:G", "1", instructions_ns, "50.00"),
               in);
    return TableEventsOf(in.writer.VcpuSets().at(0));
  };
  EXPECT_THAT(events(500'000'000), ElementsAre("cycles", "instructions"));
  EXPECT_THAT(events(500'000'001), ElementsAre("cycles"));
}

TEST(PerfTable, WhoIsAVcpu) {
  Imported in;
  ImportPerf(Line(0.1, "CPU 1/KVM-12", "cycles:G", "2", 1) +
                 Line(0.1, "CPU 0/KVM-11", "cycles:G", "1", 1) +
                 Line(0.1, "qemu-system-x86-10", "cycles:G", "5", 1) +
                 Line(0.1, "CPU 0/KVM-21", "cycles:G", "3", 1),
             in);
  EXPECT_EQ(in.report.vcpus, 3u);
  EXPECT_EQ(in.Deltas(1, 1, 1).at(0).counts[0], 2u);
  EXPECT_EQ(in.Deltas(2, 1, 0).at(0).counts[0], 3u);
  EXPECT_THAT(in.table.notes, Contains(HasSubstr("left out 1 thread without the name of a vCPU")));
}

TEST(PerfTable, ThreadsWithoutNamesOfVcpus) {
  Imported in;
  ImportPerf(
      Line(0.1, "qemu-kvm-12", "cycles:G", "2", 1) + Line(0.1, "qemu-kvm-11", "cycles:G", "1", 1),
      in);
  EXPECT_EQ(in.Deltas(1, 1, 0).at(0).counts[0], 1u);
  EXPECT_EQ(in.Deltas(1, 1, 1).at(0).counts[0], 2u);
  EXPECT_THAT(in.table.notes, Contains(HasSubstr("each thread is a vCPU")));
}

// Whole percents are cut, so the time enabled lies between two bounds; an event that is always on
// the PMU tells it.
// Each set has all notes: one for each cgroup would be the square of them.
TEST(PerfTable, ANoteComesOnce) {
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += R"({"interval":1.0,"counter-value":"1","event":"cycles:G","cgroup":"c)" +
            std::to_string(i) + R"(","thread":"a-7"})" + "\n";
  }
  const auto table = ParsePerfJson(text, "x.json");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->vms.size(), 20u);
  EXPECT_EQ(table->notes.size(), 1u);
}

TEST(PerfTable, TheTimeEnabled) {
  const auto enabled = [](const std::string& lines) {
    Imported in;
    ImportPerf(lines, in);
    return in.Deltas(1, 1).at(0).time_enabled_ns;
  };
  const auto cycles = [](const char* percent) {
    return Line(1, "CPU 0/KVM-1", "cycles:G", "1", 300'000'000, percent);
  };
  EXPECT_EQ(enabled(cycles("100.00")), 300'000'000u);
  EXPECT_NEAR(static_cast<double>(enabled(cycles("50.00"))), (300e6 / .50 + 300e6 / .51) / 2, 2);
  EXPECT_NEAR(static_cast<double>(enabled(cycles("50.25"))), 300e6 / .5025, 1e5);
  EXPECT_EQ(enabled(cycles("50.00") + Line(1, "CPU 0/KVM-1", "r1:G", "1", 597'000'000)),
            597'000'000u);
  EXPECT_EQ(enabled(cycles("0.00")), 1'000'000'000u);  // no more than there was
}

TEST(PerfTable, OfSeveralThreadsTogether) {
  Imported in;
  ImportPerf(Line(0.1, "", "cycles:G", "1", 350'000'000), in);
  EXPECT_EQ(in.Deltas(1, 1).at(0).time_enabled_ns, 100'000'000u);
  EXPECT_THAT(in.table.notes, Contains(HasSubstr("several threads together")));
}

TEST(PerfTable, WithoutTimesTheyAreSubstituted) {
  Imported in;
  ImportPerf(R"({"interval" : 0.1, "counter-value" : "5", "event" : "cycles:G"})", in);
  EXPECT_EQ(in.Deltas(1, 1).at(0).counts[0], 5u);
  EXPECT_THAT(in.report.substitutions, Contains(HasSubstr("time_enabled_ns is absent")));
}

TEST(PerfTable, EventsOfOneNameStayTwo) {
  Imported in;
  ImportPerf(Line(0.1, "", "cycles:G", "1", 1) + Line(0.1, "", "cpu-cycles:G", "2", 1) +
                 Line(0.1, "", "cpu/cycles/G", "3", 1),
             in);
  EXPECT_THAT(in.table.events, ElementsAre("cycles", "cpu-cycles:G", "cpu/cycles/G"));
  EXPECT_THAT(in.CountsOf("cpu-cycles:G"), ElementsAre(Optional(2u)));
}

}  // namespace
}  // namespace vcpulse::importing

// Rows as `vcpulse export` writes them: several vCPUs per tick with instants of their own, VMs of
// one name, epochs, threads, the wall clock.
#include "monitor/import/csv_table.h"
#include "tests/unit/monitor/import/csv_fixture.h"

namespace vcpulse::importing {
namespace {

using ::testing::ElementsAre;

constexpr char kHead[] =
    "t_ns,t_wall_ns,dt_ns,tick,vm,vm_number,vm_pid,vm_uuid,epoch,vcpu,tid,kvm_id,cycles,"
    "time_enabled_ns,time_running_ns,raw_band\n";

// The vCPUs of a tick are read one after the other: they are one sample all the same.
TEST(ImportExports, VcpusOfOneTickAreOneSample) {
  Imported in;
  ImportText(std::string(kHead) +
                 "1000000,,1000000,7,a,1,5,u,1,0,50,0,1,9,9,\n"
                 "1000040,,1000000,7,a,1,5,u,1,1,51,2,2,9,9,\n"
                 "2000000,,1000000,8,a,1,5,u,1,0,50,0,3,9,9,\n"
                 "2000070,,1000030,8,a,1,5,u,1,1,51,2,4,9,9,\n",
             in);
  EXPECT_EQ(in.report.epochs, 1u);
  EXPECT_EQ(in.report.ticks, 2u);
  const auto sets = in.writer.VcpuSets();
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].instance().pid(), 5u);
  EXPECT_EQ(sets[0].instance().uuid(), "u");
  EXPECT_EQ(sets[0].vcpus(1).tid(), 51u);
  EXPECT_EQ(sets[0].vcpus(1).kvm_id(), 2u);
  EXPECT_EQ(in.writer.ticks.at(1).sample.tick, 7u);
  EXPECT_EQ(in.writer.ticks.at(2).sample.tick, 8u);
  EXPECT_EQ(in.writer.ticks.at(2).sample.vcpus.at(1).read_end_ns, 2000070);
  EXPECT_EQ(in.Deltas(1, 1, 1).at(1).counts[0], 4u);
  EXPECT_EQ(in.Deltas(1, 1, 1).at(1).interval_ns, 1000030);
}

// Ticks that are no ticks: they say nothing, and time alone counts.
TEST(ImportExports, TicksAgainstTheOrderOfTime) {
  for (const char* ticks : {"8,7", "0,1"}) {
    Imported in;
    const std::string t(ticks);
    ImportText("t_ns,dt_ns,tick,cycles\n100,100," + t.substr(0, 1) + ",1\n200,100," +
                   t.substr(2, 1) + ",2\n",
               in);
    EXPECT_EQ(in.report.ticks, 2u);
    EXPECT_EQ(in.writer.ticks.at(1).sample.tick, 1u) << t;
  }
}

TEST(ImportExports, VmsOfOneNameStayTwo) {
  for (const char* second : {"a,2,5,u", "a,1,6,u", "a,1,5,v"}) {
    Imported in;
    ImportText(std::string(kHead) + "1000,,1000,1,a,1,5,u,1,0,,,1,9,9,\n1000,,1000,1," + second +
                   ",1,0,,,2,9,9,\n",
               in);
    EXPECT_EQ(in.report.vms, 2u) << second;
    EXPECT_EQ(in.Deltas(1, 1).at(0).counts[0], 1u);
    EXPECT_EQ(in.Deltas(2, 1).at(0).counts[0], 2u);
  }
}

// A vCPU was unplugged and another plugged in its place, a recording was resumed: the rows join,
// and the epochs do not.
TEST(ImportExports, EpochsAndThreadsOfTheRows) {
  Imported in;
  ImportText(std::string(kHead) +
                 "1000,,1000,1,a,1,5,u,1,0,50,0,1,9,9,\n"
                 "2000,,1000,2,a,1,5,u,2,0,50,0,2,9,9,\n"
                 "3000,,1000,3,a,1,5,u,2,0,51,0,3,9,9,\n"
                 "4000,,1000,4,a,1,5,u,2,0,51,0,4,9,9,\n",
             in);
  const auto sets = in.writer.VcpuSets();
  ASSERT_EQ(sets.size(), 3u);
  EXPECT_EQ(sets[2].vcpus(0).tid(), 51u);
  EXPECT_EQ(in.Deltas(1, 3).size(), 2u);
}

TEST(ImportExports, TheWallClock) {
  Imported in;
  ImportText(std::string(kHead) +
                 "1000,,1000,1,a,1,5,u,1,0,50,0,1,9,9,\n"
                 "2000,1700000000000002000,1000,2,a,1,5,u,1,0,50,0,2,9,9,\n",
             in);
  const auto clock = std::ranges::find_if(
      in.writer.records, [](const auto& record) { return record.has_clock_snapshot(); });
  ASSERT_NE(clock, in.writer.records.end());
  EXPECT_EQ(clock->clock_snapshot().realtime_ns() - clock->clock_snapshot().mono_ns(),
            1700000000000000000);
}

// Groups that take turns keep their counts, and their share of the time.
TEST(ImportExports, FurtherGroups) {
  Imported in;
  ImportTableInto(
      ParseJsonl("{\"interval_s\":1,\"cycles\":1,\"r1\":2,\"counted_share\":{\"r1\":0.25},"
                 "\"time_enabled_ns\":1000,\"time_running_ns\":900}\n"
                 "{\"interval_s\":1,\"cycles\":3,\"r1\":0,\"counted_share\":{\"r1\":null},"
                 "\"time_enabled_ns\":0,\"time_running_ns\":0}\n",
                 "x.jsonl"),
      in);
  ASSERT_EQ(in.writer.ticks.size(), 3u);
  const core::GroupSample& group = in.writer.ticks[1].sample.further.at(0);
  EXPECT_EQ(group.counts[0], 2u);
  EXPECT_EQ(group.time_enabled_ns, 1000u);
  EXPECT_EQ(group.time_running_ns, 250u);
  EXPECT_EQ(in.writer.ticks[2].sample.further.at(0), group);
  EXPECT_EQ(in.Deltas(1, 1).at(0).time_running_ns, 900u);
}

// More events than a group has: they go on in the next.
TEST(ImportExports, NineEvents) {
  Imported in;
  ImportText("dt_ns,r1,r2,r3,r4,r5,r6,r7,r8,r9\n100,1,2,3,4,5,6,7,8,9\n", in);
  const auto sets = in.writer.VcpuSets();
  ASSERT_EQ(sets.at(0).further_groups_size(), 1);
  EXPECT_EQ(sets[0].further_groups(0).events(0), "r9");
  EXPECT_EQ(in.writer.ticks.back().sample.further.at(0).counts[0], 9u);
  std::string head = "dt_ns";
  std::string row = "100";
  for (int i = 0; i < 65; ++i) {
    head += ",r" + std::to_string(i) + "f";
    row += ",1";
  }
  EXPECT_THAT(Refusal(head + "\n" + row + "\n"),
              testing::HasSubstr("row 2: 65 events: at most 64"));
}

TEST(ImportExports, ImpossibleCountsAreTold) {
  Imported in;
  ImportText(
      "dt_ns,cycles,instructions\n1000000,5000000,9000000\n1000000,50000000,1\n1000000,1000,"
      "900000\n",
      in);
  EXPECT_EQ(in.report.impossible, 2u);
  EXPECT_EQ(in.report.first_impossible, 3u);
  EXPECT_EQ(in.Deltas(1, 1).at(1).counts[0], 50000000u);
}

TEST(ImportExports, TwoColumnsOfOneEvent) {
  EXPECT_THAT(Refusal("dt_ns,pause_cycles,cpu_clk_unhalted.pause\n1,2,3\n"),
              testing::HasSubstr("two columns count cpu_clk_unhalted.pause"));
}

}  // namespace
}  // namespace vcpulse::importing

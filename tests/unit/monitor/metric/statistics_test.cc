#include "monitor/metric/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/fixtures/made_statistics.h"

namespace vcpulse::metric {
namespace {

using fixtures::StatisticsOf;

constexpr int64_t kSecond = 1'000'000'000;

// vCPUs 0, 1, ...
v1::VcpuSet SetOf(uint32_t vcpus) {
  v1::VcpuSet set;
  for (uint32_t i = 0; i < vcpus; ++i) set.add_vcpus()->set_index(i);
  return set;
}

uint64_t CountOf(const StatisticsDelta& delta, Statistic statistic) {
  return delta.Of(statistic).count;
}

TEST(StatisticsReader, GivesWhatCameBetweenTwoReadingsOnce) {
  StatisticsReader reader;
  EXPECT_FALSE(reader.Take(1, 1, 0));
  reader.Add(StatisticsOf(1, 1, kSecond, {"exits", "migrations"}, {{10, 1}, {20, 2}}), SetOf(2));
  const auto first = reader.Take(1, 1, 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->Of(Statistic::kExits).time_ns, 0);  // nothing to be subtracted from
  reader.Add(StatisticsOf(1, 1, 3 * kSecond, {"exits", "migrations"}, {{15, 1}, {40, 5}}),
             SetOf(2));
  const auto second = reader.Take(1, 1, 0);
  ASSERT_TRUE(second);
  EXPECT_EQ(CountOf(*second, Statistic::kExits), 5u);
  EXPECT_EQ(second->Of(Statistic::kExits).time_ns, 2 * kSecond);
  EXPECT_EQ(CountOf(*second, Statistic::kMigrations), 0u);
  EXPECT_EQ(second->Of(Statistic::kMigrations).time_ns, 2 * kSecond);
  EXPECT_EQ(second->Of(Statistic::kHaltExits).time_ns, 0);  // not in the source
  EXPECT_EQ(second->EndNs(), 3 * kSecond);
  EXPECT_FALSE(reader.Take(1, 1, 0));
  // The other vCPU's waited for it.
  const auto other = reader.Take(1, 1, 1);
  ASSERT_TRUE(other);
  EXPECT_EQ(CountOf(*other, Statistic::kExits), 20u);
  EXPECT_FALSE(reader.Take(1, 1, 2));
}

// Ticks that are missing between lose nothing of what was counted.
TEST(StatisticsReader, ReadingsThatNoTickFollowedAddUp) {
  StatisticsReader reader;
  reader.Add(StatisticsOf(1, 1, kSecond, {"exits"}, {{10}}), SetOf(1));
  reader.Take(1, 1, 0);
  reader.Add(StatisticsOf(1, 1, 2 * kSecond, {"exits"}, {{11}}), SetOf(1));
  reader.Add(StatisticsOf(1, 1, 3 * kSecond, {"exits"}, {{}}), SetOf(1));  // could not be read
  reader.Add(StatisticsOf(1, 1, 4 * kSecond, {"exits"}, {{14}}), SetOf(1));
  const auto delta = reader.Take(1, 1, 0);
  ASSERT_TRUE(delta);
  EXPECT_EQ(CountOf(*delta, Statistic::kExits), 4u);
  EXPECT_EQ(delta->Of(Statistic::kExits).time_ns, 3 * kSecond);
}

// x86 tells ports from MMIO, and polls that were won from lost ones.
TEST(StatisticsReader, NamesOfOneStatisticAddUp) {
  StatisticsReader reader;
  const std::vector<std::string> names = {"io_exits", "mmio_exits", "halt_poll_success_ns",
                                          "halt_poll_fail_ns", "halt_wait_ns"};
  reader.Add(StatisticsOf(1, 1, kSecond, names, {{1, 10, 100, 1000, 7}}), SetOf(1));
  reader.Add(StatisticsOf(1, 1, 2 * kSecond, names, {{2, 12, 103, 1004, 9}}), SetOf(1));
  const auto delta = reader.Take(1, 1, 0);
  ASSERT_TRUE(delta);
  EXPECT_EQ(CountOf(*delta, Statistic::kIoExits), 3u);
  EXPECT_EQ(CountOf(*delta, Statistic::kHaltPollNs), 7u);
}

TEST(StatisticsReader, WhatFellIsNotCounted) {
  StatisticsReader reader;
  reader.Add(StatisticsOf(1, 1, kSecond, {"exits"}, {{10}}), SetOf(1));
  reader.Add(StatisticsOf(1, 1, 2 * kSecond, {"exits"}, {{9}}), SetOf(1));
  EXPECT_EQ(reader.Take(1, 1, 0)->Of(Statistic::kExits).time_ns, 0);
  reader.Add(StatisticsOf(1, 1, 3 * kSecond, {"exits"}, {{12}}), SetOf(1));
  EXPECT_EQ(CountOf(*reader.Take(1, 1, 0), Statistic::kExits), 3u);
  reader.Add(StatisticsOf(1, 1, 3 * kSecond, {"exits"}, {{13}}), SetOf(1));  // no time between
  EXPECT_EQ(reader.Take(1, 1, 0)->Of(Statistic::kExits).time_ns, 0);
}

TEST(StatisticsReader, InstantsOfADamagedFileAreNoTime) {
  StatisticsReader reader;
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
  reader.Add(StatisticsOf(1, 1, kFirst, {"exits"}, {{10}}), SetOf(1));
  reader.Add(StatisticsOf(1, 1, std::numeric_limits<int64_t>::max(), {"exits"}, {{11}}), SetOf(1));
  EXPECT_EQ(reader.Take(1, 1, 0)->Of(Statistic::kExits).time_ns, 0);
}

TEST(StatisticsReader, EpochsAndVmsAreApart) {
  StatisticsReader reader;
  reader.Add(StatisticsOf(1, 1, kSecond, {"exits"}, {{10}}), SetOf(1));
  reader.Add(StatisticsOf(1, 2, 2 * kSecond, {"exits"}, {{50}}), SetOf(1));
  EXPECT_EQ(reader.Take(1, 2, 0)->Of(Statistic::kExits).time_ns, 0);
  EXPECT_FALSE(reader.Take(2, 1, 0));
  reader.EndEpoch(1, 1);
  EXPECT_FALSE(reader.Take(1, 1, 0));
}

// A damaged or hostile file.
TEST(StatisticsReader, WhatDoesNotFitIsPassedOver) {
  StatisticsReader reader;
  reader.Add(StatisticsOf(1, 1, kSecond, {"exits"}, {{10}, {11}, {12}}),
             SetOf(2));  // three for two
  reader.Add(StatisticsOf(1, 1, kSecond, {"exits", "migrations"}, {{10}, {11}}), SetOf(2));
  reader.Add(StatisticsOf(1, 1, kSecond, {"a_later_kernels"}, {{10}, {11}}), SetOf(2));
  EXPECT_FALSE(reader.Take(1, 1, 0));
}

TEST(StatisticsReader, TellsWhereTheThreadLastRan) {
  StatisticsReader reader;
  v1::Statistics read = StatisticsOf(1, 1, kSecond, {}, {{}});
  read.mutable_sources(0)->mutable_vcpus(0)->set_cpu(7);
  reader.Add(read, SetOf(1));
  EXPECT_EQ(reader.Take(1, 1, 0)->cpu, 7u);
}

// The home is where most readings were until then; a reading that took no CPU tells nothing.
TEST(StatisticsReader, AThreadAwayFromItsHomeNodeIsRemote) {
  StatisticsReader reader;
  reader.SetNodes({1, 1, 2, 2, 0});
  v1::Statistics record = StatisticsOf(1, 1, kSecond, {"exits"}, {{10}});
  const auto remote_on = [&](std::optional<uint32_t> cpu) {
    v1::VcpuStatistics& vcpu = *record.mutable_sources(0)->mutable_vcpus(0);
    vcpu.clear_cpu();
    if (cpu) vcpu.set_cpu(*cpu);
    reader.Add(record, SetOf(1));
    return reader.Take(1, 1, 0)->is_remote;
  };
  EXPECT_EQ(remote_on(2), false);
  EXPECT_EQ(remote_on(0), true);
  EXPECT_EQ(remote_on(std::nullopt), std::nullopt);
  EXPECT_EQ(remote_on(1), false);  // now most were here
  EXPECT_EQ(remote_on(3), true);
  EXPECT_EQ(remote_on(4), std::nullopt);  // its node is not known
  EXPECT_EQ(remote_on(7), std::nullopt);  // nor is the CPU
  StatisticsReader of_one_node;
  of_one_node.Add(record, SetOf(1));
  EXPECT_EQ(of_one_node.Take(1, 1, 0)->is_remote, std::nullopt);
}

// Two VMs of one vCPU each on CPUs 0 and 4, the threads of one core.
TEST(StatisticsReader, TellsWhoRanOnTheSameCore) {
  StatisticsReader reader;
  reader.SetCores({1, 2, 3, 4, 1, 2, 3, 4});
  const auto read = [&reader](uint32_t vm, int64_t mono_ns, uint32_t cpu) {
    v1::Statistics record =
        StatisticsOf(vm, 1, mono_ns, {"run_ns"}, {{static_cast<uint64_t>(mono_ns)}});
    record.mutable_sources(0)->mutable_vcpus(0)->set_cpu(cpu);
    reader.Add(record, SetOf(1));
    return reader.Take(vm, 1, 0)->neighbours;
  };
  EXPECT_EQ(read(1, kSecond, 0), std::nullopt);
  EXPECT_EQ(read(2, kSecond, 4), std::nullopt);
  EXPECT_THAT(read(1, 2 * kSecond, 0), testing::Optional(testing::IsEmpty()));
  EXPECT_THAT(read(2, 2 * kSecond, 4), testing::Optional(testing::ElementsAre(VcpuId{1, 0})));
  EXPECT_THAT(read(1, 3 * kSecond, 0), testing::Optional(testing::ElementsAre(VcpuId{2, 0})));
  reader.EndEpoch(2, 1);
  EXPECT_THAT(read(1, 4 * kSecond, 0), testing::Optional(testing::IsEmpty()));
}

// By their index, not by their place in the set.
TEST(StatisticsReader, NamesNeighboursByTheirIndex) {
  StatisticsReader reader;
  reader.SetCores({1, 1});
  v1::VcpuSet set;
  set.add_vcpus()->set_index(5);
  set.add_vcpus()->set_index(7);
  for (const int64_t now_ns : {kSecond, 2 * kSecond}) {
    const auto ran_ns = static_cast<uint64_t>(now_ns);
    v1::Statistics record = StatisticsOf(1, 1, now_ns, {"run_ns"}, {{ran_ns}, {ran_ns}});
    for (int i = 0; i < 2; ++i) {
      record.mutable_sources(0)->mutable_vcpus(i)->set_cpu(static_cast<uint32_t>(i));
    }
    reader.Add(record, set);
  }
  EXPECT_THAT(reader.Take(1, 1, 1)->neighbours,
              testing::Optional(testing::ElementsAre(VcpuId{1, 5})));
}

}  // namespace
}  // namespace vcpulse::metric

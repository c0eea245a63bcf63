#include "monitor/report/uncounted_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/report/why_notes.h"
#include "tests/unit/fixtures/made_interval.h"

namespace vcpulse::report {
namespace {

using metric::Statistic;

constexpr int64_t kSecond_ns = 1'000'000'000;

class UncountedTimeTest : public ::testing::Test {
 protected:
  // A second on a CPU; before it was read what a second had of these.
  void Add(core::Rule rule, const std::vector<std::pair<Statistic, uint64_t>>& counts = {}) {
    metric::StatisticsDelta read;
    for (const auto& [statistic, count] : counts) {
      read.progress[static_cast<size_t>(statistic)] = {.count = count, .time_ns = kSecond_ns};
    }
    metric::IntervalMaker().With(
        {.end_ns = kSecond_ns, .verdict = {.band = core::Band::kUnknown, .rule = rule}},
        [&](metric::Interval interval) {
          if (!counts.empty()) interval.statistics = &read;
          vcpu_.uncounted.Add(interval);
        });
  }
  // Seconds by cause, unexplained, not read.
  std::vector<double> Seconds() const {
    std::vector<double> seconds;
    for (const UncountedTime::Part& part : vcpu_.uncounted.parts())
      seconds.push_back(part.ns / 1e9);
    seconds.push_back(vcpu_.uncounted.UnexplainedNs() / 1e9);
    seconds.push_back(vcpu_.uncounted.UnreadNs() / 1e9);
    return seconds;
  }

  VcpuSummary vcpu_;
};

// A reading tells of what came before it.
TEST_F(UncountedTimeTest, GoesToWhatTheNextReadingShows) {
  Add(core::Rule::kNoCounters);
  Add(core::Rule::kNoCounters, {{Statistic::kIoExits, 5'000}});
  EXPECT_THAT(Seconds(), ::testing::ElementsAre(0, 1, 0, 0, 1));
  Add(core::Rule::kNoCounters, {{Statistic::kIoExits, 4'999}});
  EXPECT_THAT(Seconds(), ::testing::ElementsAre(0, 1, 0, 1, 1));
  Add(core::Rule::kNoCounters, {{Statistic::kHaltExits, 10'000}});
  EXPECT_THAT(Seconds(), ::testing::ElementsAre(0, 1, 1, 1, 1));
  Add(core::Rule::kNoCounters, {{Statistic::kHaltExits, 9'999}});
  EXPECT_THAT(Seconds(), ::testing::ElementsAre(0, 1, 1, 2, 1));
  EXPECT_EQ(vcpu_.uncounted.TotalNs(), 5e9);
}

TEST_F(UncountedTimeTest, PollingIsHalfOfTheTimeOnACpu) {
  Add(core::Rule::kNoCounters);
  Add(core::Rule::kNoCounters,
      {{Statistic::kHaltPollNs, 500'000'000}, {Statistic::kIoExits, 9'000}});
  EXPECT_THAT(Seconds(), ::testing::ElementsAre(1, 0, 0, 0, 1));
  Add(core::Rule::kNoCounters, {{Statistic::kHaltPollNs, 499'999'999}});
  EXPECT_THAT(Seconds(), ::testing::ElementsAre(1, 0, 0, 1, 1));
}

TEST_F(UncountedTimeTest, WithoutKvmsStatisticsNothingIsRead) {
  Add(core::Rule::kNoCounters);
  Add(core::Rule::kNoCounters, {{Statistic::kMigrations, 3}});
  EXPECT_THAT(Seconds(), ::testing::ElementsAre(0, 0, 0, 0, 2));
}

TEST_F(UncountedTimeTest, WhatCountersToldIsNoneOfIt) {
  Add(core::Rule::kTightLoop);
  Add(core::Rule::kBlocked, {{Statistic::kIoExits, 50'000}});
  EXPECT_EQ(vcpu_.uncounted.TotalNs(), 0);
}

TEST_F(UncountedTimeTest, NotesNameWhatExplainsIt) {
  VmSummary vm;
  Add(core::Rule::kNoCounters);
  vm.vcpus[0] = vcpu_;
  EXPECT_EQ(UncountedNotes(vm, std::nullopt), "");  // nothing is explained
  Add(core::Rule::kNoCounters, {{Statistic::kIoExits, 50'000}});
  Add(core::Rule::kNoCounters, {{Statistic::kIoExits, 5}});
  vm.vcpus[0] = vcpu_;
  vm.vcpus[1] = vcpu_;
  EXPECT_EQ(UncountedNotes(vm, 1),
            "  without counters, vCPU 1: 3.0 s on a CPU, of these 33.3 % device-exits, 33.3 % "
            "unexplained, "
            "33.3 %\n"
            "                            not read\n");
  EXPECT_THAT(UncountedNotes(vm, std::nullopt), ::testing::HasSubstr("vCPU 0"));
}

}  // namespace
}  // namespace vcpulse::report

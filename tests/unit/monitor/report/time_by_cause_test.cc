#include "monitor/report/time_by_cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/report/why_notes.h"
#include "tests/unit/fixtures/made_interval.h"

namespace vcpulse::report {
namespace {

using metric::Statistic;

constexpr int64_t kSecond_ns = 1'000'000'000;

class TimeByCauseTest : public ::testing::Test {
 protected:
  // A second on a CPU; before it was read what a second had of these.
  void Add(core::Rule rule, const std::vector<std::pair<Statistic, uint64_t>>& counts = {},
           int64_t read_over_ns = kSecond_ns, uint64_t on_cpu_ns = kSecond_ns) {
    metric::StatisticsDelta read;
    for (const auto& [statistic, count] : counts) {
      read.progress[static_cast<size_t>(statistic)] = {.count = count, .time_ns = read_over_ns};
    }
    metric::IntervalMaker().With(
        {.end_ns = kSecond_ns, .verdict = {.band = core::Band::kUnknown, .rule = rule}},
        [&](const metric::Interval& interval) {
          core::VcpuDelta delta = interval.delta;
          delta.time_enabled_ns = on_cpu_ns;
          vcpu_.uncounted.Add(metric::Interval{.epoch = interval.epoch,
                                               .before = interval.before,
                                               .now = interval.now,
                                               .delta = delta,
                                               .residency_scale = interval.residency_scale,
                                               .verdict = interval.verdict,
                                               .statistics = counts.empty() ? nullptr : &read});
        });
  }
  // Seconds by cause, unexplained, not read.
  std::vector<double> Seconds() const {
    std::vector<double> seconds;
    for (const TimeByCause::Part& part : vcpu_.uncounted.parts()) seconds.push_back(part.ns / 1e9);
    seconds.push_back(vcpu_.uncounted.UnexplainedNs() / 1e9);
    seconds.push_back(vcpu_.uncounted.UnreadNs() / 1e9);
    return seconds;
  }

  VcpuSummary vcpu_;
};

// A reading tells of what came before it.
TEST_F(TimeByCauseTest, GoesToWhatTheNextReadingShows) {
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

TEST_F(TimeByCauseTest, PollingIsHalfOfTheTimeOnACpu) {
  Add(core::Rule::kNoCounters);
  Add(core::Rule::kNoCounters,
      {{Statistic::kHaltPollNs, 500'000'000}, {Statistic::kIoExits, 9'000}});
  EXPECT_THAT(Seconds(), ::testing::ElementsAre(1, 0, 0, 0, 1));
  Add(core::Rule::kNoCounters, {{Statistic::kHaltPollNs, 499'999'999}});
  EXPECT_THAT(Seconds(), ::testing::ElementsAre(1, 0, 0, 1, 1));
}

TEST_F(TimeByCauseTest, WithoutKvmsStatisticsNothingIsRead) {
  Add(core::Rule::kNoCounters);
  Add(core::Rule::kNoCounters, {{Statistic::kMigrations, 3}});
  EXPECT_THAT(Seconds(), ::testing::ElementsAre(0, 0, 0, 0, 2));
}

TEST_F(TimeByCauseTest, WhatCountersToldIsNoneOfIt) {
  Add(core::Rule::kTightLoop);
  Add(core::Rule::kBlocked, {{Statistic::kIoExits, 50'000}});
  EXPECT_EQ(vcpu_.uncounted.TotalNs(), 0);
}

// It is the time on a CPU alone.
TEST_F(TimeByCauseTest, IsTimeOnACpu) {
  Add(core::Rule::kNoCounters, {}, kSecond_ns, 60'000'000);
  Add(core::Rule::kNoCounters, {{Statistic::kHaltExits, 4'800}}, kSecond_ns, 70'000'000);
  EXPECT_THAT(Seconds(), ::testing::ElementsAre(0, 0, 0.06, 0, 0.07));
}

// The scheduler's counts come more often than those of KVM by QMP, which then tell of all the time.
TEST_F(TimeByCauseTest, AReadingOfTheSchedulerAloneSettlesNothing) {
  Add(core::Rule::kNoCounters);
  Add(core::Rule::kNoCounters, {{Statistic::kMigrations, 3}});
  Add(core::Rule::kNoCounters, {{Statistic::kIoExits, 10'000}}, 2 * kSecond_ns);
  EXPECT_THAT(Seconds(), ::testing::ElementsAre(0, 2, 0, 0, 1));
  // 6,000 exits in a minute, of which a second is known.
  Add(core::Rule::kNoCounters, {{Statistic::kIoExits, 6'000}}, 60 * kSecond_ns);
  EXPECT_THAT(Seconds(), ::testing::ElementsAre(0, 2, 0, 1, 1));
}

// Half of a second of a halted vCPU was the host's, which polled for it.
TEST_F(TimeByCauseTest, PollingIsSplitByItsCause) {
  metric::StatisticsDelta read;
  read.progress[static_cast<size_t>(Statistic::kHaltPollNs)] = {.count = 900'000'000,
                                                                .time_ns = kSecond_ns};
  const metric::Made made{.end_ns = kSecond_ns,
                          .verdict = {.band = core::Band::kHalted, .rule = core::Rule::kPolling},
                          .counts = {1'000'000, 1'000'000},
                          .residency = 0.01};
  for (const bool has_read : {false, true}) {
    metric::IntervalMaker().With(made, [&](metric::Interval interval) {
      if (has_read) interval.statistics = &read;
      vcpu_.polling.Add(interval);
      vcpu_.uncounted.Add(interval);
    });
  }
  EXPECT_NEAR(vcpu_.polling.parts()[0].ns, 0.99e9, 1e6);
  EXPECT_NEAR(vcpu_.polling.UnreadNs(), 0.99e9, 1e6);
  EXPECT_EQ(vcpu_.uncounted.TotalNs(), 0);
  VmSummary vm;
  vm.vcpus[0] = vcpu_;
  EXPECT_THAT(TimeNotes(vm, std::nullopt),
              ::testing::HasSubstr("  halted, but busy, vCPU 0: 2.0 s on a CPU outside of the "
                                   "guest, of these 50.0 % halt-polling"));
  EXPECT_EQ(metric::IntervalMaker().With(
                {.end_ns = kSecond_ns, .verdict = {.rule = core::Rule::kPolling}},
                [](const metric::Interval& interval) { return PollingNs(interval); }),
            0);  // its residency is not known
}

// 0.4 s of polling are all of the time outside of the guest, though not half of that on a CPU.
TEST_F(TimeByCauseTest, PollingIsHeldAgainstTheTimeOutsideOfTheGuest) {
  metric::StatisticsDelta read;
  read.progress[static_cast<size_t>(Statistic::kHaltPollNs)] = {.count = 400'000'000,
                                                                .time_ns = 2 * kSecond_ns};
  const auto add = [&](core::Band band, core::Rule rule, double residency, bool has_read) {
    metric::IntervalMaker().With({.end_ns = kSecond_ns,
                                  .verdict = {.band = band, .rule = rule},
                                  .counts = {1'000'000, 1'000'000},
                                  .residency = residency},
                                 [&](metric::Interval interval) {
                                   core::VcpuDelta delta = interval.delta;
                                   if (rule == core::Rule::kPolling) {
                                     delta.time_enabled_ns = 400'000'000;
                                   }
                                   const metric::Interval changed{
                                       .epoch = interval.epoch,
                                       .before = interval.before,
                                       .now = interval.now,
                                       .groups = {&delta, 1},
                                       .delta = delta,
                                       .residency_scale = interval.residency_scale,
                                       .verdict = interval.verdict,
                                       .statistics = has_read ? &read : nullptr};
                                   vcpu_.polling.Add(changed);
                                 });
  };
  add(core::Band::kProductive, core::Rule::kIpcHigh, 1, false);
  add(core::Band::kHalted, core::Rule::kPolling, 0.001, false);
  add(core::Band::kProductive, core::Rule::kIpcHigh, 1, true);
  EXPECT_NEAR(vcpu_.polling.parts()[0].ns, 0.4e9, 2e6);
  EXPECT_EQ(vcpu_.polling.UnexplainedNs(), 0);
}

TEST_F(TimeByCauseTest, NotesNameWhatExplainsIt) {
  VmSummary vm;
  Add(core::Rule::kNoCounters);
  vm.vcpus[0] = vcpu_;
  EXPECT_EQ(TimeNotes(vm, std::nullopt), "");  // nothing was read
  Add(core::Rule::kNoCounters, {{Statistic::kIoExits, 50'000}});
  Add(core::Rule::kNoCounters, {{Statistic::kIoExits, 5}});
  vm.vcpus[0] = vcpu_;
  vm.vcpus[1] = vcpu_;
  EXPECT_EQ(TimeNotes(vm, 1),
            "  without counters, vCPU 1: 3.0 s on a CPU, of these 33.3 % device-exits, 33.3 % "
            "unexplained, "
            "33.3 %\n"
            "                            not read\n");
  EXPECT_THAT(TimeNotes(vm, std::nullopt), ::testing::HasSubstr("vCPU 0"));
}

}  // namespace
}  // namespace vcpulse::report

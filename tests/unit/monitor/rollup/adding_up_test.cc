// Rows of short windows add up to those of long ones and to the totals of the report, to the
// nanosecond and the count, whatever the timeline.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "monitor/report/summary.h"
#include "tests/unit/fixtures/live_recording.h"
#include "tests/unit/fixtures/timeline_fixture.h"
#include "tests/unit/monitor/rollup/rolled_up.h"

namespace vcpulse::rollup {
namespace {

using metric::Metric;
using Sums = std::map<std::string, Cells>;

// Without its window, or in the window of `length_ns` that holds it.
std::string KeyOf(const Cells& row, int64_t length_ns) {
  std::string key;
  for (const Column& column : Columns()) {
    if (column.adds_up || column.is_maximum || column.name == "window_ns" ||
        column.name == "other_counts") {
      continue;
    }
    const Value& value = row.find(column.name)->second;
    int64_t number = 0;
    if (const auto* text = std::get_if<std::string>(&value)) key += *text;
    if (const auto* found = std::get_if<int64_t>(&value)) number = *found;
    if (column.name == "window_start_ns") number = length_ns == 0 ? 0 : number / length_ns;
    key += "|" + std::to_string(number);
  }
  return key;
}

Sums SumsOf(const std::vector<Cells>& rows, int64_t length_ns) {
  Sums sums;
  for (const Cells& row : rows) AddCells(row, sums[KeyOf(row, length_ns)]);
  return sums;
}

// Of all rows of a vCPU.
Cells SumOf(const std::vector<Cells>& rows, uint32_t vm, uint32_t vcpu) {
  Cells sum;
  for (const Cells& row : rows) {
    if (Number(row, "vm") == vm && Number(row, "vcpu") == vcpu) AddCells(row, sum);
  }
  return sum;
}

void ExpectTotals(const Cells& sum, const report::VcpuSummary& vcpu) {
  const auto expect_part = [&](const char* column, Metric metric) {
    const metric::Ratio& ratio = vcpu.totals.Of(metric);
    if (!(ratio.whole > 0)) return;
    EXPECT_EQ(static_cast<double>(Number(sum, column)), ratio.part) << column;
  };
  const auto expect_whole = [&](const char* column, Metric metric) {
    EXPECT_EQ(static_cast<double>(Number(sum, column)), vcpu.totals.Of(metric).whole) << column;
  };
  EXPECT_EQ(static_cast<double>(Number(sum, "measured_ns")), vcpu.totals.MeasuredNs());
  expect_part("halted_ns", Metric::kHalted);
  expect_part("spinning_ns", Metric::kSpinning);
  expect_part("productive_ns", Metric::kProductive);
  expect_part("unknown_ns", Metric::kUnknown);
  expect_part("starved_ns", Metric::kStarved);
  expect_whole("starved_known_ns", Metric::kStarved);
  expect_part("run_ns", Metric::kRun);
  expect_part("run_delay_ns", Metric::kRunDelay);
  expect_whole("scheduled_ns", Metric::kRunDelay);
  expect_part("guest_ns", Metric::kResidency);
  expect_whole("guest_known_ns", Metric::kResidency);
  expect_part("time_running_ns", Metric::kRunning);
  expect_whole("time_enabled_ns", Metric::kRunning);
  expect_part("exits", Metric::kExits);
  expect_part("migrations", Metric::kMigrations);
  EXPECT_EQ(Number(sum, "longest_spin_ns"), vcpu.spin.length_ns());
  EXPECT_EQ(Number(sum, "longest_starvation_ns"), vcpu.starved.length_ns());
  const auto rule_ns = [&vcpu](core::Rule rule) { return vcpu.rule_ns[static_cast<size_t>(rule)]; };
  EXPECT_EQ(Number(sum, "unknown_starved_ns"), rule_ns(core::Rule::kStarved));
  EXPECT_EQ(Number(sum, "unknown_paused_ns"), rule_ns(core::Rule::kPaused));
  EXPECT_EQ(Number(sum, "unknown_no_counters_ns"), rule_ns(core::Rule::kNoCounters));
}

void ExpectCount(const Cells& sum, const report::VcpuSummary& vcpu, const char* column,
                 const char* event) {
  const report::EventTotal* total = vcpu.FindEvent(event);
  const auto raw = total == nullptr ? std::nullopt : total->Raw();
  if (!raw) return;
  EXPECT_EQ(Number(sum, column), static_cast<int64_t>(*raw)) << column;
}

// `read` hands the entries of one timeline to a sink, as often as it is called.
template <typename Read>
void ExpectAddsUp(const Read& read, bool counts_in_main_group) {
  const std::vector<int64_t> lengths = {kSecond_ns, 10 * kSecond_ns, 60 * kSecond_ns,
                                        3600 * kSecond_ns};
  const RolledUp rolled = RollUp(lengths, read);
  ASSERT_EQ(rolled.undated_intervals, 0u);
  ASSERT_FALSE(rolled.rows.front().empty());
  for (size_t level = 1; level < lengths.size(); ++level) {
    EXPECT_EQ(SumsOf(rolled.rows[0], lengths[level]), SumsOf(rolled.rows[level], lengths[level]))
        << "windows of " << lengths[level] << " ns";
  }
  report::Summary summary;
  read([&summary](const timeline::Entry& entry) { return summary.Add(entry); });
  size_t vcpus = 0;
  for (const auto& [number, vm] : summary.vms()) {
    for (const auto& [index, vcpu] : vm.vcpus) {
      if (vcpu.totals.MeasuredNs() == 0) continue;
      SCOPED_TRACE("VM " + std::to_string(number) + " vCPU " + std::to_string(index));
      const Cells sum = SumOf(rolled.rows[0], number, index);
      ExpectTotals(sum, vcpu);
      if (!counts_in_main_group) continue;
      ExpectCount(sum, vcpu, "cycles", "cycles");
      ExpectCount(sum, vcpu, "instructions", "instructions");
      ExpectCount(sum, vcpu, "branch_misses", "branch-misses");
      ++vcpus;
    }
  }
  EXPECT_EQ(vcpus > 0, counts_in_main_group);
}

TEST(AddingUp, GoldenTimelines) {
  for (const int version : {1, 2, 3, 4, 5}) {
    const std::string path = VCPULSE_TEST_DATA "/timeline-v" + std::to_string(version) + ".vpt";
    SCOPED_TRACE(path);
    ExpectAddsUp(
        [&path](const timeline::EntrySink& sink) {
          const auto read = timeline::ReadTimeline(path, sink);
          EXPECT_TRUE(read.ok()) << read.status();
        },
        false);
  }
}

timeline::Bytes RandomRecording(uint32_t seed, replay::LiveRecording::Groups groups) {
  std::minstd_rand random(seed + 1);
  const auto below = [&random](int most) { return static_cast<int>(random() % most); };
  const int64_t interval_ns = (1 + below(20)) * 7'000'000;
  replay::LiveRecording recording(interval_ns, groups);
  uint32_t epoch = 1;
  recording.Begin({.vm = 1, .epoch = epoch, .vcpus = 1 + seed % 3});
  recording.Begin({.vm = 2, .epoch = 1, .vcpus = 2});
  for (int i = 0; i < 4; ++i) {
    recording.Run(30 + below(200));
    recording.Begin({.vm = 1, .epoch = ++epoch, .vcpus = 1 + random() % 4});
    if (i == 2) recording.Ended(2);
  }
  recording.Run(20);
  recording.End("duration");
  // Chunks that were lost, but for the first.
  std::vector<timeline::Bytes> chunks = {recording.chunks().front()};
  for (size_t i = 1; i < recording.chunks().size(); ++i) {
    if (below(8) > 0) chunks.push_back(recording.chunks()[i]);
  }
  return timeline::Concatenate(chunks);
}

TEST(AddingUp, RandomTimelinesWithLosses) {
  using Groups = replay::LiveRecording::Groups;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const auto groups = std::vector{Groups::kOne, Groups::kInTurns, Groups::kCorePmus}[seed % 3];
    const timeline::Bytes bytes = RandomRecording(seed, groups);
    ExpectAddsUp(
        [&bytes](const timeline::EntrySink& sink) {
          const auto read = timeline::ReadTimelineBytes(bytes, sink);
          EXPECT_TRUE(read.ok()) << read.status();
        },
        groups != Groups::kInTurns);
  }
}

// The wall clock jumps about while the recording runs: windows may come twice, and sums stay.
TEST(AddingUp, WhateverTheWallClockDoes) {
  const timeline::Bytes bytes = RandomRecording(3, replay::LiveRecording::Groups::kOne);
  ExpectAddsUp(
      [&bytes](const timeline::EntrySink& sink) {
        std::minstd_rand random(5);
        int64_t ahead_ns = 0;
        const auto read = timeline::ReadTimelineBytes(bytes, [&](const timeline::Entry& entry) {
          const auto* snapshot = std::get_if<v1::ClockSnapshot>(&entry.record);
          if (snapshot == nullptr) return sink(entry);
          if (random() % 4 == 0)
            ahead_ns += (static_cast<int64_t>(random() % 101) - 50) * kSecond_ns;
          timeline::Entry stepped{.sequence = entry.sequence, .record = *snapshot};
          auto& clock = std::get<v1::ClockSnapshot>(stepped.record);
          clock.set_realtime_ns(clock.realtime_ns() + ahead_ns);
          return sink(stepped);
        });
        EXPECT_TRUE(read.ok()) << read.status();
      },
      true);
}

}  // namespace
}  // namespace vcpulse::rollup

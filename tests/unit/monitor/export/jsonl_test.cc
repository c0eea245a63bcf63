#include "monitor/export/jsonl.h"

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "boost/json.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/export/exporter.h"
#include "monitor/report/summary.h"
#include "tests/unit/fixtures/hand_made_recording.h"
#include "tests/unit/fixtures/live_recording.h"
#include "tests/unit/fixtures/made_statistics.h"

namespace vcpulse::exporting {
namespace {

namespace json = boost::json;
using replay::LiveRecording;
using report::HandMadeRecording;
using report::Summary;
using report::VcpuSummary;
using ::testing::SizeIs;

std::vector<json::value> ParseLines(const std::string& text) {
  std::vector<json::value> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) rows.push_back(json::parse(line));
  return rows;
}

// Keeps what is handed to it.
Sink IntoLines(std::string& text) {
  return [&text](std::string_view more) {
    text += more;
    return absl::OkStatus();
  };
}

std::vector<json::value> Export(std::span<const uint8_t> bytes, Summary* summary = nullptr) {
  std::string text;
  JsonlExport exporter(IntoLines(text));
  const auto read = timeline::ReadTimelineBytes(bytes, [&](const timeline::Entry& entry) {
    if (summary != nullptr) {
      EXPECT_TRUE(summary->Add(entry).ok());
    }
    return exporter.Add(entry);
  });
  EXPECT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(exporter.unusable_ticks(), 0U);
  EXPECT_TRUE(exporter.Finish().ok());
  EXPECT_EQ(text.back(), '\n');
  return ParseLines(text);
}

double Number(const json::value& row, const char* key) { return row.at(key).to_number<double>(); }

std::vector<json::value> ExportLive(LiveRecording::Groups groups, Summary* summary) {
  LiveRecording live(100'000'000, groups);
  live.Begin({.vm = 1, .epoch = 1, .vcpus = 2});
  live.Begin({.vm = 2, .epoch = 1, .vcpus = 1});
  live.Run(100);
  live.End("duration");
  std::vector<json::value> rows = Export(timeline::Concatenate(live.chunks()), summary);
  EXPECT_THAT(rows, SizeIs(99 * 3));  // the first sample of an epoch gives none
  return rows;
}

// What the rows add up to is what the report says: one way to count, one to know residency.
class SumsOfRows : public ::testing::TestWithParam<LiveRecording::Groups> {};

TEST_P(SumsOfRows, AreTheReport) {
  Summary summary;
  const auto rows = ExportLive(GetParam(), &summary);
  const VcpuSummary& vcpu = summary.vms().at(1).vcpus.at(1);
  double cycles = 0;
  double seconds = 0;
  double resident = 0;
  double enabled = 0;
  for (const json::value& row : rows) {
    if (row.at("vm") != 1 || row.at("vcpu") != 1) continue;
    if (!row.at("cycles").is_null()) cycles += Number(row, "cycles");
    seconds += Number(row, "interval_s");
    enabled += Number(row, "time_enabled_ns");
    if (row.at("residency").is_null()) continue;
    resident += Number(row, "residency") * Number(row, "interval_s");
  }
  EXPECT_NEAR(seconds, vcpu.totals.MeasuredNs() / 1e9, 1e-6);
  EXPECT_EQ(enabled, vcpu.totals.Of(metric::Metric::kRunning).whole);
  EXPECT_NEAR(resident, vcpu.totals.Of(metric::Metric::kResidency).part / 1e9, 1e-6);
  if (GetParam() != LiveRecording::Groups::kInTurns) {
    EXPECT_EQ(cycles, static_cast<double>(vcpu.FindEvent("cycles")->raw));
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, SumsOfRows,
                         ::testing::Values(LiveRecording::Groups::kOne,
                                           LiveRecording::Groups::kInTurns,
                                           LiveRecording::Groups::kCorePmus));

timeline::Entry TickOf(const core::Sample& now, const core::Sample* before,
                       const core::Verdict& verdict) {
  timeline::TickEntry tick{.vm = 1, .epoch = 1, .sample = now, .verdicts = {verdict}};
  tick.previous = before;
  return {.sequence = 3, .record = tick};
}

// Two samples of one vCPU, and what they are exported as.
class TwoSamples : public ::testing::Test {
 protected:
  TwoSamples() {
    set_.mutable_vcpus(0)->set_index(4);
    set_.add_absent_events()->set_event("cache-misses");
    set_.add_further_groups()->add_events("branches");
    before_.vcpus = {{.read_begin_ns = 1000, .read_end_ns = 2000}};
    before_.further.resize(1);
    now_ = before_;
    now_.tick = 7;
    core::VcpuSample& vcpu = now_.vcpus[0];
    vcpu.read_begin_ns += 100'000'000;
    vcpu.read_end_ns += 100'000'000;
    vcpu.time_enabled_ns = 50'000'000;
    vcpu.time_running_ns = 25'000'000;
    vcpu.counts[0] = 20'000'000;
    vcpu.counts[1] = 30'000'000;
    vcpu.state = core::ThreadState::kBlocked;
    now_.further[0].time_enabled_ns = 50'000'000;
  }

  // The row of the second one.
  json::value Row(const core::Verdict& verdict = {}) {
    std::string text;
    JsonlExport exporter(IntoLines(text));
    EXPECT_TRUE(exporter.Add({.sequence = 1, .record = HandMadeRecording::Session()}).ok());
    for (const v1::ClockSnapshot& clock : clocks_) {
      EXPECT_TRUE(exporter.Add({.sequence = 0, .record = clock}).ok());
    }
    EXPECT_TRUE(exporter.Add({.sequence = 2, .record = set_}).ok());
    EXPECT_TRUE(exporter.Add(TickOf(before_, nullptr, {})).ok());
    for (const v1::Statistics& statistics : statistics_) {
      EXPECT_TRUE(exporter.Add({.sequence = 3, .record = statistics}).ok());
    }
    EXPECT_TRUE(exporter.Flush().ok());
    EXPECT_EQ(text, "");
    EXPECT_TRUE(exporter.Add(TickOf(now_, &before_, verdict)).ok());
    EXPECT_TRUE(exporter.Finish().ok());
    const std::vector<json::value> rows = ParseLines(text);
    EXPECT_THAT(rows, SizeIs(1));
    return rows.empty() ? json::value() : rows.front();
  }

  v1::VcpuSet set_ = HandMadeRecording::Set(1, 1, {2001});
  std::vector<v1::Statistics> statistics_;
  core::Sample before_;
  core::Sample now_;
  std::vector<v1::ClockSnapshot> clocks_;
};

// By name, with the values that follow from the two samples; null for what was not measured.
TEST_F(TwoSamples, HaveTheDocumentedKeys) {
  EXPECT_EQ(Row(), json::parse(R"({"t_mono_ns": 100001500, "t_wall_ns": null, "tick": 7, "vm": 1,
    "vm_name": "guest1", "vm_pid": 1001, "vm_start_time": null, "vm_uuid": null, "epoch": 1,
    "vcpu": 4, "tid": 2001, "kvm_id": null, "interval_s": 0.1, "cycles": 20000000,
    "instructions": 30000000, "branches": null, "cache-misses": null,
    "counted_share": {"branches": 0}, "time_enabled_ns": 50000000, "time_running_ns": 25000000,
    "run_ns": null, "run_delay_ns": null, "state": "blocked", "residency": 0.4, "ipc": 1.5,
    "cache_miss_rate": null, "ghz": 0.8, "branch_miss_rate": null, "band": null, "raw_band": null, "rule": null, "confidence": null,
    "starved": null})"));
}

TEST_F(TwoSamples, HaveTheirVerdict) {
  now_.further[0].time_running_ns = 10'000'000;
  now_.further[0].counts[0] = 77;
  const json::value row = Row({.band = core::Band::kSpinning,
                               .rule = core::Rule::kPause,
                               .starved = true,
                               .confidence_pct = 95,
                               .raw_band = core::Band::kProductive,
                               .raw_rule = core::Rule::kIpcHigh});
  EXPECT_EQ(row.at("branches"), 77);
  EXPECT_EQ(row.at("counted_share").at("branches"), 0.2);
  EXPECT_EQ(row.at("band"), "spinning");
  EXPECT_EQ(row.at("raw_band"), "productive");
  EXPECT_EQ(row.at("rule"), "pause");
  EXPECT_EQ(row.at("confidence"), 0.95);
  EXPECT_EQ(row.at("starved"), true);
}

TEST_F(TwoSamples, HaveTheirIdentity) {
  v1::VmInstance& instance = *set_.mutable_instance();
  instance.set_name("we\"b\n");
  instance.set_start_time_ticks(812'345);
  instance.set_uuid("0-1");
  set_.mutable_vcpus(0)->set_kvm_id(0);
  const json::value row = Row();
  EXPECT_EQ(row.at("vm_name"), "we\"b\n");
  EXPECT_EQ(row.at("vm_start_time"), 812'345);
  EXPECT_EQ(row.at("vm_uuid"), "0-1");
  EXPECT_EQ(row.at("kvm_id"), 0);  // a number, not an absent one
  instance.set_pid(0);             // as of an import
  set_.mutable_vcpus(0)->set_tid(0);
  const json::value imported = Row();
  EXPECT_TRUE(imported.at("vm_pid").is_null());
  EXPECT_TRUE(imported.at("tid").is_null());
}

// The latest snapshot tells; one that knows no clock tells nothing.
TEST_F(TwoSamples, HaveTheirWallTime) {
  clocks_.resize(3);
  clocks_[0].set_mono_ns(5);
  clocks_[0].set_realtime_ns(1'000'000'000'000'000'005);
  clocks_[1].set_mono_ns(7);
  clocks_[1].set_realtime_ns(1'700'000'000'000'000'008);
  EXPECT_EQ(Row().at("t_wall_ns"), 1'700'000'000'100'001'501);
}

// To the ns, whatever the double.
TEST_F(TwoSamples, HaveAnExactInterval) {
  now_.vcpus[0].read_begin_ns += 23'456'789;
  now_.vcpus[0].read_end_ns += 23'456'789;
  EXPECT_EQ(std::llround(Row().at("interval_s").to_number<double>() * 1e9), 123'456'789);
}

TEST_F(TwoSamples, TellCacheMissesPerInstruction) {
  set_.clear_absent_events();
  set_.add_events("cache-misses");
  now_.vcpus[0].counts[2] = 3;
  EXPECT_EQ(Row().at("cache_miss_rate"), 1e-7);
  now_.vcpus[0].counts[1] = 0;
  EXPECT_TRUE(Row().at("cache_miss_rate").is_null());
}

// An event is never mistaken for another key.
// They stand in the rows that have a reading alone; what its source does not have is null there.
TEST_F(TwoSamples, ReadingsHaveTheirKeysWhereTheyAre) {
  statistics_ = {
      fixtures::StatisticsOf(1, 1, 1'000'000'000, {"exits", "halt_poll_fail_ns"}, {{10, 0}}),
      fixtures::StatisticsOf(1, 1, 3'000'000'000, {"exits", "halt_poll_fail_ns"},
                             {{30, 500'000'000}})};
  const json::object row = Row().as_object();
  EXPECT_EQ(row.at("exits").to_number<double>(), 10);
  EXPECT_EQ(row.at("halt_poll").to_number<double>(), 250);
  EXPECT_TRUE(row.at("migrations").is_null());
  statistics_.pop_back();
  EXPECT_TRUE(Row().as_object().at("exits").is_null());
  statistics_.clear();
  EXPECT_FALSE(Row().as_object().contains("exits"));
}

TEST_F(TwoSamples, EventsThatAreNamedAsKeysAre) {
  set_.set_events(0, "tick");
  set_.set_events(1, "starved");
  set_.mutable_further_groups(0)->set_events(0, "event:tick");
  const json::value row = Row();
  EXPECT_EQ(row.at("tick"), 7);
  EXPECT_EQ(row.at("event:tick"), 20'000'000);
  EXPECT_EQ(row.at("event:starved"), 30'000'000);
  EXPECT_TRUE(row.at("event:event:tick").is_null());
  EXPECT_TRUE(row.at("starved").is_null());
}

TEST_F(TwoSamples, AFrequencyThatIsNoNumberIsNoResidency) {
  std::string text;
  JsonlExport exporter(IntoLines(text));
  v1::Session session = HandMadeRecording::Session();
  session.set_max_hz(std::numeric_limits<double>::quiet_NaN());
  ASSERT_TRUE(exporter.Add({.sequence = 1, .record = session}).ok());
  ASSERT_TRUE(exporter.Add({.sequence = 2, .record = set_}).ok());
  ASSERT_TRUE(exporter.Add(TickOf(now_, &before_, {})).ok());
  ASSERT_TRUE(exporter.Finish().ok());
  EXPECT_EQ(text.find("nan"), std::string::npos) << text;
}

TEST(JsonlExport, StopsWhereTheSinkDoes) {
  LiveRecording live(100'000'000, LiveRecording::Groups::kOne);
  live.Begin({.vm = 1, .epoch = 1, .vcpus = 1});
  live.Run(1000);
  live.End("duration");
  int pieces = 0;
  JsonlExport exporter([&](std::string_view) {
    return ++pieces == 3 ? absl::CancelledError("gone") : absl::OkStatus();
  });
  const auto read = timeline::ReadTimelineBytes(
      timeline::Concatenate(live.chunks()),
      [&](const timeline::Entry& entry) { return exporter.Add(entry); });
  EXPECT_TRUE(absl::IsCancelled(read.status()));
  EXPECT_EQ(pieces, 3);
}

v1::ClockSnapshot At(int64_t mono_ns, int64_t boottime_ahead_ns) {
  v1::ClockSnapshot snapshot;
  snapshot.set_mono_ns(mono_ns);
  snapshot.set_boottime_ns(mono_ns + boottime_ahead_ns);
  return snapshot;
}

// Two readings of a snapshot lie some ns apart: what follows must not seem to come earlier.
TEST(Clocks, JitterBetweenSnapshotsMovesNoInstant) {
  Clocks clocks;
  EXPECT_EQ(clocks.Boottime(5), std::nullopt);
  clocks.Take(At(1'000, 70'000));
  clocks.Take(At(2'000, 69'900));
  EXPECT_EQ(clocks.Boottime(2'000), 72'000);
}

TEST(Clocks, ASuspendedHostDoes) {
  Clocks clocks;
  clocks.Take(At(1'000, 70'000));
  clocks.Take(At(2'000, 70'000 + 3'000'000'000));
  EXPECT_EQ(clocks.Boottime(2'000), 3'000'072'000);
}

}  // namespace

}  // namespace vcpulse::exporting

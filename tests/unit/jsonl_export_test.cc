#include "monitor/report/jsonl_export.h"

#include <string>
#include <vector>

#include "boost/json.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hand_made_recording.h"
#include "tests/unit/live_recording.h"

namespace vcpulse::report {
namespace {

namespace json = boost::json;
using replay::LiveRecording;
using ::testing::SizeIs;

std::vector<json::value> Export(std::span<const uint8_t> bytes, Summary* summary = nullptr) {
  std::vector<json::value> rows;
  JsonlExport exporter([&](const std::string& line) {
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    rows.push_back(json::parse(line));
    return absl::OkStatus();
  });
  const auto read = timeline::ReadTimelineBytes(bytes, [&](const timeline::Entry& entry) {
    if (summary != nullptr) {
      EXPECT_TRUE(summary->Add(entry).ok());
    }
    return exporter.Add(entry);
  });
  EXPECT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(exporter.unusable_ticks(), 0U);
  return rows;
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
  EXPECT_NEAR(seconds, static_cast<double>(vcpu.measured_ns) / 1e9, 1e-6);
  EXPECT_EQ(enabled, static_cast<double>(vcpu.time_enabled_ns));
  EXPECT_NEAR(resident, vcpu.resident_ns / 1e9, 1e-6);
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

// By name, with the values that follow from the two samples; null for what was not measured.
TEST(JsonlExport, HasTheDocumentedKeys) {
  std::vector<json::value> rows;
  JsonlExport exporter([&](const std::string& line) {
    rows.push_back(json::parse(line));
    return absl::OkStatus();
  });
  ASSERT_TRUE(exporter.Add({.sequence = 1, .record = HandMadeRecording::Session()}).ok());
  v1::VcpuSet set = HandMadeRecording::Set(1, 1, {2001});
  set.mutable_vcpus(0)->set_index(4);
  set.add_absent_events()->set_event("cache-misses");
  set.add_further_groups()->add_events("branches");
  ASSERT_TRUE(exporter.Add({.sequence = 2, .record = set}).ok());

  core::Sample before;
  before.vcpus = {{.read_begin_ns = 1000, .read_end_ns = 2000}};
  before.further.resize(1);
  core::Sample now = before;
  now.tick = 7;
  core::VcpuSample& vcpu = now.vcpus[0];
  vcpu.read_begin_ns += 100'000'000;
  vcpu.read_end_ns += 100'000'000;
  vcpu.time_enabled_ns = 50'000'000;
  vcpu.time_running_ns = 25'000'000;
  vcpu.counts[0] = 20'000'000;
  vcpu.counts[1] = 30'000'000;
  vcpu.state = core::ThreadState::kBlocked;
  now.further[0].time_enabled_ns = 50'000'000;
  ASSERT_TRUE(exporter.Add(TickOf(before, nullptr, {})).ok());
  EXPECT_THAT(rows, SizeIs(0));
  ASSERT_TRUE(exporter.Add(TickOf(now, &before, {})).ok());
  const core::Verdict verdict{.band = core::Band::kSpinning,
                              .rule = core::Rule::kPause,
                              .starved = true,
                              .confidence_pct = 95,
                              .raw_band = core::Band::kProductive,
                              .raw_rule = core::Rule::kIpcHigh};
  now.further[0].time_running_ns = 10'000'000;
  now.further[0].counts[0] = 77;
  ASSERT_TRUE(exporter.Add(TickOf(now, &before, verdict)).ok());

  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0], json::parse(R"({"t_mono_ns": 100001500, "tick": 7, "vm": 1,
    "vm_name": "guest1", "vcpu": 4, "interval_s": 0.1, "cycles": 20000000,
    "instructions": 30000000, "branches": null, "cache-misses": null,
    "counted_share": {"branches": 0}, "time_enabled_ns": 50000000, "time_running_ns": 25000000,
    "run_ns": null, "run_delay_ns": null, "state": "blocked", "residency": 0.4, "ipc": 1.5,
    "band": null, "raw_band": null, "rule": null, "confidence": null, "starved": null})"))
      << rows[0];
  EXPECT_EQ(rows[1].at("branches"), 77);
  EXPECT_EQ(rows[1].at("band"), "spinning");
  EXPECT_EQ(rows[1].at("raw_band"), "productive");
  EXPECT_EQ(rows[1].at("rule"), "pause");
  EXPECT_EQ(rows[1].at("confidence"), 0.95);
  EXPECT_EQ(rows[1].at("starved"), true);
}

TEST(JsonlExport, StopsWhereTheSinkDoes) {
  LiveRecording live(100'000'000, LiveRecording::Groups::kOne);
  live.Begin({.vm = 1, .epoch = 1, .vcpus = 1});
  live.Run(10);
  live.End("duration");
  int lines = 0;
  JsonlExport exporter([&](const std::string&) {
    return ++lines == 3 ? absl::CancelledError("gone") : absl::OkStatus();
  });
  const auto read = timeline::ReadTimelineBytes(
      timeline::Concatenate(live.chunks()),
      [&](const timeline::Entry& entry) { return exporter.Add(entry); });
  EXPECT_TRUE(absl::IsCancelled(read.status()));
  EXPECT_EQ(lines, 3);
}

}  // namespace
}  // namespace vcpulse::report

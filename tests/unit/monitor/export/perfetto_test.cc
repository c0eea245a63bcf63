#include "monitor/export/perfetto.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "monitor/timeline/reader.h"
#include "tests/unit/fixtures/drawn_recording.h"
#include "tests/unit/fixtures/live_recording.h"

namespace vcpulse::exporting {
namespace {

using check::DrawnRecording;
using check::kDrawnStart_ns;
using perfetto::TrackEvent;
using replay::LiveRecording;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

struct Slice {
  std::string name;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;

  bool operator==(const Slice&) const = default;
};

void PrintTo(const Slice& slice, std::ostream* out) {
  *out << slice.name << " " << slice.begin_ns << ".." << slice.end_ns;
}

// A trace as its reader sees it, tracks by their path ("host1/VM 1 guest1 (PID 1001)/vCPU 0").
struct Seen {
  std::map<std::string, std::vector<Slice>> slices;
  std::map<std::string, std::vector<std::pair<int64_t, double>>> counters;
  std::map<std::string, std::vector<std::pair<int64_t, std::string>>> instants;
  perfetto::Trace trace;
};

// Also holds what is so of every trace: sequence ids, declared tracks, slices that are closed.
Seen Decode(const std::string& bytes) {
  Seen seen;
  EXPECT_TRUE(seen.trace.ParseFromString(bytes));
  std::map<uint64_t, std::string> paths;
  std::map<std::string, std::vector<Slice>> open;
  for (const perfetto::TracePacket& packet : seen.trace.packet()) {
    EXPECT_EQ(packet.trusted_packet_sequence_id(), 1U) << packet.ShortDebugString();
    if (packet.has_track_descriptor()) {
      const perfetto::TrackDescriptor& track = packet.track_descriptor();
      EXPECT_FALSE(paths.contains(track.uuid()));
      EXPECT_EQ(track.sibling_merge_behavior(), perfetto::TrackDescriptor::NONE);
      const bool has_parent = track.has_parent_uuid();
      EXPECT_TRUE(!has_parent || paths.contains(track.parent_uuid()));
      paths[track.uuid()] = (has_parent ? paths[track.parent_uuid()] + "/" : "") + track.name();
      continue;
    }
    EXPECT_GT(packet.timestamp(), 0U);
    if (!packet.has_track_event()) continue;
    const TrackEvent& event = packet.track_event();
    EXPECT_TRUE(paths.contains(event.track_uuid()));
    const std::string& path = paths[event.track_uuid()];
    const auto time_ns = static_cast<int64_t>(packet.timestamp());
    switch (event.type()) {
      case TrackEvent::SLICE_BEGIN:
        open[path].push_back({.name = event.name(), .begin_ns = time_ns});
        break;
      case TrackEvent::SLICE_END:
        EXPECT_FALSE(open[path].empty()) << path;
        if (open[path].empty()) break;
        open[path].back().end_ns = time_ns;
        seen.slices[path].push_back(open[path].back());
        open[path].pop_back();
        break;
      case TrackEvent::INSTANT:
        seen.instants[path].emplace_back(time_ns, event.name());
        break;
      case TrackEvent::COUNTER:
        EXPECT_TRUE(event.has_double_counter_value());
        seen.counters[path].emplace_back(time_ns, event.double_counter_value());
        break;
      default:
        ADD_FAILURE() << packet.ShortDebugString();
    }
  }
  for (const auto& [path, slices] : open) EXPECT_THAT(slices, IsEmpty()) << path;
  return seen;
}

std::string ExportBytes(std::span<const uint8_t> bytes) {
  std::string trace;
  PerfettoExport exporter([&trace](std::string_view more) {
    trace += more;
    return absl::OkStatus();
  });
  const auto read = timeline::ReadTimelineBytes(
      bytes, [&](const timeline::Entry& entry) { return exporter.Add(entry); });
  EXPECT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(exporter.Finish().ok());
  return trace;
}

std::string ContentsOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Seen Export(const std::string& path) {
  const std::string file = ContentsOf(path);
  return Decode(ExportBytes({reinterpret_cast<const uint8_t*>(file.data()), file.size()}));
}

// Slices in ms after the start of a drawn recording.
std::vector<std::string> InMs(const std::vector<Slice>& slices) {
  std::vector<std::string> texts;
  for (const Slice& slice : slices) {
    const auto ms = [](int64_t ns) { return std::to_string((ns - kDrawnStart_ns) / 1'000'000); };
    texts.push_back(ms(slice.begin_ns) + "-" + ms(slice.end_ns) + " " + slice.name);
  }
  return texts;
}

constexpr char kVcpu[] = "host1/VM 1 guest1 (PID 1001)/vCPU 0";

TEST(PerfettoExport, ASlicePerRunOfOneBand) {
  DrawnRecording drawn;
  drawn.Draw("HHPPPSUUN?HH");
  const Seen seen = Export(drawn.Finish());
  EXPECT_THAT(
      InMs(seen.slices.at(kVcpu)),
      ElementsAre("0-200 HALTED", "200-500 PRODUCTIVE", "500-600 SPINNING",
                  "600-800 UNKNOWN(unclear)", "800-900 UNKNOWN(no-counters)", "1000-1200 HALTED"));
}

// Where an epoch's first sample is, nothing is known of the time before.
TEST(PerfettoExport, NothingIsDrawnWhereNothingWasSampled) {
  DrawnRecording drawn;
  drawn.Draw("PP^");
  drawn.Pass(300'000'000);
  drawn.Draw("PP");
  const Seen seen = Export(drawn.Finish());
  EXPECT_THAT(InMs(seen.slices.at(kVcpu)), ElementsAre("0-200 PRODUCTIVE", "500-700 PRODUCTIVE"));
}

TEST(PerfettoExport, StarvedIsATrackOfItsOwn) {
  DrawnRecording drawn;
  drawn.Draw("PpsS");
  const Seen seen = Export(drawn.Finish());
  EXPECT_THAT(InMs(seen.slices.at(kVcpu)), ElementsAre("0-200 PRODUCTIVE", "200-400 SPINNING"));
  EXPECT_THAT(InMs(seen.slices.at(std::string(kVcpu) + "/starved")),
              ElementsAre("100-300 starved"));
}

// At the end of each interval; where it is unknown there is no value, and no 0.
TEST(PerfettoExport, CountersWhereTheyAreKnown) {
  DrawnRecording drawn;
  drawn.Draw("PHR");
  const Seen seen = Export(drawn.Finish());
  const auto at = [](int64_t ms) { return kDrawnStart_ns + ms * 1'000'000; };
  EXPECT_THAT(seen.counters.at(std::string(kVcpu) + "/IPC"),
              ElementsAre(Pair(at(100), 2.0), Pair(at(300), 2.0)));
  EXPECT_THAT(seen.counters.at(std::string(kVcpu) + "/residency"),
              ElementsAre(Pair(at(100), 1.0), Pair(at(200), 0.0), Pair(at(300), 0.5)));
}

TEST(PerfettoExport, MarkersAreInstantsOfTheHost) {
  DrawnRecording drawn;
  drawn.Draw("P[boot]PP[run]P");
  const Seen seen = Export(drawn.Finish());
  EXPECT_THAT(seen.instants.at("host1/markers"),
              ElementsAre(Pair(kDrawnStart_ns + 100'000'000, "boot"),
                          Pair(kDrawnStart_ns + 300'000'000, "run")));
}

// A stamp of the harness's own does not stretch the trace.
TEST(PerfettoExport, MarkersAreNeverOutsideOfTheRecording) {
  DrawnRecording drawn;
  drawn.Draw("P");
  drawn.Mark("before", 1);
  drawn.Mark("after", kDrawnStart_ns + 3'600'000'000'000);
  drawn.Mark("soon", kDrawnStart_ns + 250'000'000);
  drawn.Draw("PPP");
  const Seen seen = Export(drawn.Finish());
  EXPECT_THAT(
      seen.instants.at("host1/markers"),
      ElementsAre(Pair(kDrawnStart_ns, "before"), Pair(kDrawnStart_ns + 250'000'000, "soon"),
                  Pair(kDrawnStart_ns + 400'000'000, "after")));
}

v1::Gap GapOf(uint32_t vm, v1::Gap::Reason reason, int64_t mono_ns) {
  v1::Gap gap;
  gap.set_vm(vm);
  gap.set_reason(reason);
  gap.set_mono_ns(mono_ns);
  return gap;
}

// From the sample before to the sample after; what is noticed again in between is the same gap.
TEST(PerfettoExport, GapsAreSlicesOfTheirVm) {
  std::string trace;
  PerfettoExport exporter([&trace](std::string_view more) {
    trace += more;
    return absl::OkStatus();
  });
  uint64_t sequence = 0;
  const auto add = [&](auto record) {
    ASSERT_TRUE(exporter.Add({.sequence = ++sequence, .record = std::move(record)}).ok());
  };
  const auto tick = [](uint32_t vm, int64_t wake_ns) {
    timeline::TickEntry entry{.vm = vm, .epoch = 1};
    entry.sample.wake_ns = wake_ns;
    return entry;
  };
  add(DrawnRecording::Session());
  add(tick(1, 1000));
  add(tick(2, 1001));
  add(GapOf(1, v1::Gap::REASON_READ_FAILED, 2000));
  add(GapOf(1, v1::Gap::REASON_READ_FAILED, 2500));
  add(tick(2, 2600));
  add(GapOf(0, v1::Gap::REASON_TICK_MISSED, 2900));
  add(tick(1, 3000));
  add(tick(2, 3001));
  add(GapOf(2, v1::Gap::REASON_QUEUE_FULL, 3500));
  add(GapOf(2, v1::Gap::REASON_READ_FAILED, 3600));
  ASSERT_TRUE(exporter.Finish().ok());
  const Seen seen = Decode(trace);
  EXPECT_THAT(seen.slices.at("host1/VM 1/gaps"),
              ElementsAre(Slice{"gap: read-failed", 1000, 3000}));
  EXPECT_THAT(seen.slices.at("host1/gaps of all VMs"),
              ElementsAre(Slice{"gap: tick-missed", 2600, 3000}));
  EXPECT_THAT(
      seen.slices.at("host1/VM 2/gaps"),
      ElementsAre(Slice{"gap: queue-full", 3001, 3600}, Slice{"gap: read-failed", 3600, 3600}));
}

TEST(PerfettoExport, VmsOfOneNameAreTracksOfTheirOwn) {
  DrawnRecording drawn;
  drawn.Name(1, "web");
  drawn.Name(2, "web");
  drawn.Begin(1, {});
  drawn.Begin(2, {});
  drawn.Draw({{1, {"P"}}, {2, {"S"}}});
  const Seen seen = Export(drawn.Finish());
  EXPECT_THAT(InMs(seen.slices.at("host1/VM 1 web (PID 1001)/vCPU 0")),
              ElementsAre("0-100 PRODUCTIVE"));
  EXPECT_THAT(InMs(seen.slices.at("host1/VM 2 web (PID 1002)/vCPU 0")),
              ElementsAre("0-100 SPINNING"));
}

TEST(PerfettoExport, TheLifeOfAVmIsInstantsOfItsTrack) {
  DrawnRecording drawn;
  drawn.Draw("PP!");
  const Seen seen = Export(drawn.Finish());
  EXPECT_THAT(seen.instants.at("host1/VM 1 guest1 (PID 1001)"),
              ElementsAre(Pair(kDrawnStart_ns + 200'000'000, "vm-ended")));
}

// What the intervals of a recording say, each by itself, against what the trace says.
class WholeRecording : public ::testing::TestWithParam<LiveRecording::Groups> {};

TEST_P(WholeRecording, HasExactlyItsSlicesAndCounters) {
  LiveRecording live(100'000'000, GetParam());
  live.Begin({.vm = 1, .epoch = 1, .vcpus = 2});
  live.Begin({.vm = 2, .epoch = 1, .vcpus = 1});
  live.Run(150);
  live.Begin({.vm = 1, .epoch = 2, .vcpus = 2});
  live.Run(150);
  live.End("duration");
  const timeline::Bytes bytes = timeline::Concatenate(live.chunks());
  const Seen seen = Decode(ExportBytes(bytes));

  std::map<std::string, std::vector<Slice>> slices;
  std::map<std::string, std::vector<std::pair<int64_t, double>>> counters;
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  int64_t last_ns = 0;
  metric::IntervalReader intervals;
  const auto read = timeline::ReadTimelineBytes(bytes, [&](const timeline::Entry& entry) {
    if (const auto instant = timeline::InstantOf(entry)) {
      first_ns = std::min(first_ns, *instant);
      last_ns = std::max(last_ns, *instant);
    }
    return intervals.Add(entry, [&](const metric::Interval& interval) {
      last_ns = std::max(last_ns, interval.EndNs());
      const std::string vm = std::to_string(interval.Vm());
      const std::string path =
          "host1/VM " + vm + " guest" + vm + "/vCPU " + std::to_string(interval.Vcpu().index());
      if (metric::ValueOf(metric::Metric::kIpc, interval)) {
        counters[path + "/IPC"].emplace_back(interval.EndNs(),
                                             *metric::ValueOf(metric::Metric::kIpc, interval));
      }
      if (const auto residency = interval.Residency()) {
        counters[path + "/residency"].emplace_back(interval.EndNs(), *residency);
      }
      const core::Verdict& verdict = interval.verdict;
      if (verdict.band == core::Band::kNone) return absl::OkStatus();
      std::string name(core::ToString(verdict.band));
      if (verdict.band == core::Band::kUnknown) {
        name += "(" + std::string(core::ToString(verdict.rule)) + ")";
      }
      std::vector<Slice>& of_vcpu = slices[path];
      if (!of_vcpu.empty() && of_vcpu.back().name == name &&
          of_vcpu.back().end_ns == interval.BeginNs()) {
        of_vcpu.back().end_ns = interval.EndNs();
      } else {
        of_vcpu.push_back({name, interval.BeginNs(), interval.EndNs()});
      }
      return absl::OkStatus();
    });
  });
  ASSERT_TRUE(read.ok());
  ASSERT_THAT(slices, SizeIs(3));
  std::map<std::string, std::vector<Slice>> bands = seen.slices;
  std::erase_if(bands, [](const auto& track) { return track.first.ends_with("/starved"); });
  EXPECT_EQ(bands, slices);
  EXPECT_EQ(seen.counters, counters);
  for (const perfetto::TracePacket& packet : seen.trace.packet()) {
    if (packet.has_track_descriptor()) continue;
    EXPECT_GE(static_cast<int64_t>(packet.timestamp()), first_ns);
    EXPECT_LE(static_cast<int64_t>(packet.timestamp()), last_ns);
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, WholeRecording,
                         ::testing::Values(LiveRecording::Groups::kOne,
                                           LiveRecording::Groups::kInTurns,
                                           LiveRecording::Groups::kCorePmus));

timeline::Entry Snapshot(int64_t mono_ns, int64_t boottime_ns, int64_t realtime_ns) {
  v1::ClockSnapshot clock;
  clock.set_mono_ns(mono_ns);
  clock.set_boottime_ns(boottime_ns);
  clock.set_realtime_ns(realtime_ns);
  return {.record = clock};
}

// The host had slept for 40 s before the recording, and sleeps 60 s more within.
TEST(PerfettoExport, TimesAreThoseOfBoottime) {
  DrawnRecording drawn;
  drawn.Draw("PPHH");
  const std::string file = ContentsOf(drawn.Finish());
  std::string trace;
  PerfettoExport exporter([&trace](std::string_view more) {
    trace += more;
    return absl::OkStatus();
  });
  int ticks = 0;
  const auto read = timeline::ReadTimelineBytes(
      {reinterpret_cast<const uint8_t*>(file.data()), file.size()},
      [&](const timeline::Entry& entry) {
        if (std::holds_alternative<timeline::TickEntry>(entry.record)) ++ticks;
        const int64_t slept_ns = ticks < 4 ? 40'000'000'000 : 100'000'000'000;
        absl::Status status =
            exporter.Add(Snapshot(kDrawnStart_ns, kDrawnStart_ns + slept_ns, check::kRealtime_ns));
        if (status.ok()) status = exporter.Add(entry);
        return status;
      });
  ASSERT_TRUE(read.ok());
  ASSERT_TRUE(exporter.Finish().ok());
  const Seen seen = Decode(trace);
  EXPECT_THAT(InMs(seen.slices.at(kVcpu)),
              ElementsAre("40000-40200 PRODUCTIVE", "100200-100400 HALTED"));
  std::vector<const perfetto::TracePacket*> snapshots;
  for (const perfetto::TracePacket& packet : seen.trace.packet()) {
    if (packet.has_clock_snapshot()) snapshots.push_back(&packet);
  }
  // Told once, and again only after the sleep.
  ASSERT_THAT(snapshots, SizeIs(2));
  const auto& clocks = snapshots[0]->clock_snapshot().clocks();
  ASSERT_THAT(clocks, SizeIs(3));
  EXPECT_EQ(clocks[0].clock_id(), 6U);
  EXPECT_EQ(clocks[0].timestamp(), snapshots[0]->timestamp());
  EXPECT_EQ(clocks[1].clock_id(), 3U);
  EXPECT_EQ(clocks[0].timestamp() - clocks[1].timestamp(), 40'000'000'000U);
  EXPECT_EQ(clocks[2].clock_id(), 1U);
}

// docs/export.md tells how to renew it.
TEST(PerfettoExport, AGoldenTimelineGivesTheGoldenTrace) {
  const std::string file = ContentsOf(VCPULSE_TEST_DATA "/timeline-v1.vpt");
  const std::string bytes =
      ExportBytes({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
  const Seen seen = Decode(bytes);
  std::string text;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(seen.trace, &text));
  EXPECT_EQ(text, ContentsOf(VCPULSE_TEST_DATA "/timeline-v1.perfetto.txt"));
}

}  // namespace
}  // namespace vcpulse::exporting

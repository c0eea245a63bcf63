#include "monitor/export/perfetto.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "monitor/reading/labels.h"
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
using ::testing::IsNan;
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
    EXPECT_EQ(packet.trusted_packet_sequence_id(),
              seen.trace.packet(0).trusted_packet_sequence_id());
    EXPECT_NE(packet.trusted_packet_sequence_id(), 0U) << packet.ShortDebugString();
    if (packet.has_track_descriptor()) {
      const perfetto::TrackDescriptor& track = packet.track_descriptor();
      EXPECT_FALSE(paths.contains(track.uuid()));
      EXPECT_NE(track.has_thread(),
                track.sibling_merge_behavior() == perfetto::TrackDescriptor::NONE);
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
  // Clocks are told before anything happens, as of the earliest instant.
  const auto& packets = seen.trace.packet();
  const auto is_timed = [](const perfetto::TracePacket& packet) { return packet.has_timestamp(); };
  const auto first = std::ranges::find_if(packets, is_timed);
  const bool tells_clocks =
      std::ranges::any_of(packets, &perfetto::TracePacket::has_clock_snapshot);
  if (tells_clocks && first != packets.end()) {
    EXPECT_TRUE(first->has_clock_snapshot());
    for (const perfetto::TracePacket& packet : packets) {
      EXPECT_TRUE(!is_timed(packet) || packet.timestamp() >= first->timestamp());
    }
  }
  return seen;
}

std::string ExportBytes(std::span<const uint8_t> bytes,
                        PerfettoExport::Tracks tracks = PerfettoExport::Tracks::kOfVms) {
  std::string trace;
  PerfettoExport exporter(
      [&trace](std::string_view more) {
        trace += more;
        return absl::OkStatus();
      },
      tracks);
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
      ElementsAre("0-200 halted", "200-500 productive", "500-600 spinning",
                  "600-800 unknown(unclear)", "800-900 unknown(no-counters)", "1000-1200 halted"));
}

// Where an epoch's first sample is, nothing is known of the time before.
TEST(PerfettoExport, NothingIsDrawnWhereNothingWasSampled) {
  DrawnRecording drawn;
  drawn.Draw("PP^");
  drawn.Pass(300'000'000);
  drawn.Draw("PP");
  const Seen seen = Export(drawn.Finish());
  EXPECT_THAT(InMs(seen.slices.at(kVcpu)), ElementsAre("0-200 productive", "500-700 productive"));
}

TEST(PerfettoExport, StarvedIsATrackOfItsOwn) {
  DrawnRecording drawn;
  drawn.Draw("PpsS");
  const Seen seen = Export(drawn.Finish());
  EXPECT_THAT(InMs(seen.slices.at(kVcpu)), ElementsAre("0-200 productive", "200-400 spinning"));
  EXPECT_THAT(InMs(seen.slices.at(std::string(kVcpu) + "/starved")),
              ElementsAre("100-300 starved"));
}

// From the beginning of each interval; where it is unknown there is no number, and no 0.
TEST(PerfettoExport, CountersWhereTheyAreKnown) {
  DrawnRecording drawn;
  drawn.Draw("PHR");
  const Seen seen = Export(drawn.Finish());
  const auto at = [](int64_t ms) { return kDrawnStart_ns + ms * 1'000'000; };
  EXPECT_THAT(seen.counters.at(std::string(kVcpu) + "/IPC"),
              ElementsAre(Pair(at(0), 2.0), Pair(at(100), IsNan()), Pair(at(200), 2.0),
                          Pair(at(300), IsNan())));
  EXPECT_THAT(seen.counters.at(std::string(kVcpu) + "/residency"),
              ElementsAre(Pair(at(0), 1.0), Pair(at(100), 0.0), Pair(at(200), 0.5),
                          Pair(at(300), IsNan())));
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
              ElementsAre("0-100 productive"));
  EXPECT_THAT(InMs(seen.slices.at("host1/VM 2 web (PID 1002)/vCPU 0")),
              ElementsAre("0-100 spinning"));
}

TEST(PerfettoExport, TheLifeOfAVmIsInstantsOfItsTrack) {
  DrawnRecording drawn;
  drawn.Draw("PP!");
  const Seen seen = Export(drawn.Finish());
  EXPECT_THAT(seen.instants.at("host1/VM 1 guest1 (PID 1001)"),
              ElementsAre(Pair(kDrawnStart_ns + 200'000'000, "vm-ended")));
}

constexpr double kUnknown = -1;

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
      const auto add = [&](const std::string& name, const std::optional<double>& value) {
        if (!value) return;
        // What was known until here goes on.
        auto& points = counters[path + "/" + name];
        if (!points.empty() && points.back().first == interval.BeginNs()) points.pop_back();
        points.emplace_back(interval.BeginNs(), *value);
        points.emplace_back(interval.EndNs(), kUnknown);
      };
      add("IPC", metric::ValueOf(metric::Metric::kIpc, interval));
      add("residency", interval.Residency());
      const core::Verdict& verdict = interval.verdict;
      if (verdict.band == core::Band::kNone) return absl::OkStatus();
      std::string name(*reading::BandName(verdict.band));
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
  auto known = seen.counters;  // NaN equals nothing
  for (auto& [path, points] : known) {
    for (auto& [time_ns, value] : points) {
      if (std::isnan(value)) value = kUnknown;
    }
  }
  EXPECT_EQ(known, counters);
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
              ElementsAre("40000-40200 productive", "100200-100400 halted"));
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

// A step of the wall clock is told where it is seen; what slept nowhere needs no second word.
TEST(PerfettoExport, StepsOfTheWallClockAreTold) {
  std::string trace;
  PerfettoExport exporter([&trace](std::string_view more) {
    trace += more;
    return absl::OkStatus();
  });
  uint64_t sequence = 0;
  const auto add_clock = [&](int64_t mono_ns, int64_t realtime_ns) {
    timeline::Entry entry = Snapshot(mono_ns, mono_ns + 7, realtime_ns);
    entry.sequence = ++sequence;
    ASSERT_TRUE(exporter.Add(entry).ok());
  };
  add_clock(1'000'000'000, 50'000'000'000);
  add_clock(2'000'000'000, 51'000'000'100);
  add_clock(3'000'000'000, 99'000'000'000);
  ASSERT_TRUE(exporter.Finish().ok());
  const Seen seen = Decode(trace);
  std::vector<uint64_t> realtimes;
  for (const perfetto::TracePacket& packet : seen.trace.packet()) {
    ASSERT_TRUE(packet.has_clock_snapshot());
    realtimes.push_back(packet.clock_snapshot().clocks(2).timestamp());
  }
  EXPECT_THAT(realtimes, ElementsAre(50'000'000'000U, 99'000'000'000U));
}

// As an import has it: its own times stand in BOOTTIME's place.
TEST(PerfettoExport, WithoutBoottimeTheWallClockIsToldAllTheSame) {
  std::string trace;
  PerfettoExport exporter([&trace](std::string_view more) {
    trace += more;
    return absl::OkStatus();
  });
  timeline::Entry entry = Snapshot(1'000, 0, 5'000);
  entry.sequence = 1;
  ASSERT_TRUE(exporter.Add(entry).ok());
  ASSERT_TRUE(exporter.Finish().ok());
  const Seen seen = Decode(trace);
  ASSERT_EQ(seen.trace.packet_size(), 1);
  const auto& clocks = seen.trace.packet(0).clock_snapshot().clocks();
  ASSERT_THAT(clocks, SizeIs(2));
  EXPECT_EQ(clocks[0].clock_id(), 6U);
  EXPECT_EQ(clocks[0].timestamp(), 1'000U);
  EXPECT_EQ(clocks[1].clock_id(), 1U);
  EXPECT_EQ(clocks[1].timestamp(), 5'000U);
}

std::set<uint64_t> UuidsOf(const Seen& seen) {
  std::set<uint64_t> uuids;
  for (const perfetto::TracePacket& packet : seen.trace.packet()) {
    if (packet.has_track_descriptor()) uuids.insert(packet.track_descriptor().uuid());
  }
  return uuids;
}

TEST(PerfettoExport, TracesOfTwoStreamsShareNoTrackAndNoSequence) {
  const auto trace_of = [](char stream) {
    std::string trace;
    PerfettoExport exporter([&trace](std::string_view more) {
      trace += more;
      return absl::OkStatus();
    });
    v1::Session session = DrawnRecording::Session();
    session.set_stream_id(std::string(16, stream));
    timeline::TickEntry tick{.vm = 1, .epoch = 1};
    tick.sample.wake_ns = 1000;
    EXPECT_TRUE(exporter.Add({.sequence = 1, .record = session}).ok());
    EXPECT_TRUE(exporter.Add({.sequence = 2, .record = tick}).ok());
    EXPECT_TRUE(exporter.Finish().ok());
    return trace;
  };
  const Seen a = Decode(trace_of('a'));
  const Seen b = Decode(trace_of('b'));
  std::set<uint64_t> both = UuidsOf(a);
  ASSERT_THAT(both, SizeIs(2));  // the host and its VM
  both.merge(UuidsOf(b));
  EXPECT_THAT(both, SizeIs(4));
  EXPECT_NE(a.trace.packet(0).trusted_packet_sequence_id(),
            b.trace.packet(0).trusted_packet_sequence_id());
}

// Perfetto would sort vCPU 10 before vCPU 2.
TEST(PerfettoExport, TracksAreInTheOrderOfTheirNumbers) {
  DrawnRecording drawn;
  drawn.Begin(1, {.vcpus = {0, 2, 10}});
  drawn.Draw({{1, {"P", "S", "H"}}});
  const Seen seen = Export(drawn.Finish());
  std::map<std::string, int> ranks;
  for (const perfetto::TracePacket& packet : seen.trace.packet()) {
    if (!packet.has_track_descriptor()) continue;
    const perfetto::TrackDescriptor& track = packet.track_descriptor();
    ranks[track.name()] = track.sibling_order_rank();
    EXPECT_EQ(track.has_counter(), track.child_ordering() != perfetto::TrackDescriptor::EXPLICIT);
  }
  EXPECT_EQ(ranks["vCPU 0"], 0);
  EXPECT_EQ(ranks["vCPU 2"], 2);
  EXPECT_EQ(ranks["vCPU 10"], 10);
  EXPECT_LT(ranks["IPC"], ranks["residency"]);
}

// Beside a trace of the host's scheduler, which has the same threads.
TEST(PerfettoExport, TracksMayLieBelowTheirThreads) {
  const std::string file = ContentsOf(VCPULSE_TEST_DATA "/timeline-v1.vpt");
  const Seen seen = Decode(ExportBytes({reinterpret_cast<const uint8_t*>(file.data()), file.size()},
                                       PerfettoExport::Tracks::kOfThreads));
  std::map<uint64_t, std::pair<int, int>> threads;
  std::map<std::string, std::pair<int, int>> parents;
  for (const perfetto::TracePacket& packet : seen.trace.packet()) {
    const perfetto::TrackDescriptor& track = packet.track_descriptor();
    if (track.has_thread()) threads[track.uuid()] = {track.thread().pid(), track.thread().tid()};
    if (threads.contains(track.parent_uuid())) parents[track.name()] = threads[track.parent_uuid()];
  }
  EXPECT_EQ(parents["vCPU 0 of VM 1 g\303\244st (PID 4001)"], std::pair(4001, 4100));
  EXPECT_EQ(parents["vCPU 1 of VM 1 g\303\244st (PID 4001)"], std::pair(4001, 4101));
}

TEST(PerfettoExport, SlicesSayTheirRulesAndMeanConfidence) {
  DrawnRecording drawn;
  drawn.Draw("PPS");
  const Seen seen = Export(drawn.Finish());
  std::vector<std::string> rules;
  for (const perfetto::TracePacket& packet : seen.trace.packet()) {
    const TrackEvent& event = packet.track_event();
    if (event.type() == TrackEvent::SLICE_BEGIN) {
      EXPECT_THAT(event.categories(), ElementsAre("band"));
    }
    if (event.type() != TrackEvent::SLICE_END) continue;
    ASSERT_GE(event.debug_annotations_size(), 1);
    EXPECT_EQ(event.debug_annotations(0).name(), "rule");
    rules.push_back(event.debug_annotations(0).string_value());
  }
  EXPECT_THAT(rules, ElementsAre("ipc-high", "tight-loop"));
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

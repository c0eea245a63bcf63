#include "monitor/export/perfetto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "monitor/reading/labels.h"
#include "tests/unit/fixtures/live_recording.h"
#include "tests/unit/monitor/export/perfetto_trace.h"

namespace vcpulse::exporting {
namespace {

using check::DrawnRecording;
using check::kDrawnStart_ns;
using perfetto::TrackEvent;
using replay::LiveRecording;
using ::testing::ElementsAre;
using ::testing::IsNan;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(PerfettoExport, ASlicePerRunOfOneBand) {
  DrawnRecording drawn;
  drawn.Draw("HHPPPSUUN?HH");
  const Seen seen = TraceOfFile(drawn.Finish());
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
  const Seen seen = TraceOfFile(drawn.Finish());
  EXPECT_THAT(InMs(seen.slices.at(kVcpu)), ElementsAre("0-200 productive", "500-700 productive"));
}

TEST(PerfettoExport, StarvedIsATrackOfItsOwn) {
  DrawnRecording drawn;
  drawn.Draw("PpsS");
  const Seen seen = TraceOfFile(drawn.Finish());
  EXPECT_THAT(InMs(seen.slices.at(kVcpu)), ElementsAre("0-200 productive", "200-400 spinning"));
  EXPECT_THAT(InMs(seen.slices.at(std::string(kVcpu) + "/starved")),
              ElementsAre("100-300 starved"));
}

// From the beginning of each interval; where it is unknown there is no number, and no 0.
TEST(PerfettoExport, CountersWhereTheyAreKnown) {
  DrawnRecording drawn;
  drawn.Draw("PHR");
  const Seen seen = TraceOfFile(drawn.Finish());
  const auto at = [](int64_t ms) { return kDrawnStart_ns + ms * 1'000'000; };
  EXPECT_THAT(seen.counters.at(std::string(kVcpu) + "/IPC"),
              ElementsAre(Pair(at(0), 2.0), Pair(at(100), IsNan()), Pair(at(200), 2.0),
                          Pair(at(300), IsNan())));
  EXPECT_THAT(seen.counters.at(std::string(kVcpu) + "/residency"),
              ElementsAre(Pair(at(0), 1.0), Pair(at(100), 0.0), Pair(at(200), 0.5),
                          Pair(at(300), IsNan())));
}

// Each on a track of its own, named by what had most of it.
TEST(PerfettoExport, WindowsAreSlicesBelowTheirVcpu) {
  DrawnRecording drawn;
  drawn.Draw("SSSS");
  v1::HotAddresses hot;
  hot.set_source("cycles");
  hot.set_begin_mono_ns(kDrawnStart_ns + 100'000'000);
  for (const auto& [address, samples] : {std::pair(0x1010, 60), std::pair(0x2000, 40)}) {
    hot.add_addresses(static_cast<uint64_t>(address));
    hot.add_samples(static_cast<uint64_t>(samples));
    hot.add_modes(v1::GUEST_MODE_KERNEL);
  }
  drawn.EndWindow(hot);
  v1::Competitors competitors;
  competitors.set_begin_mono_ns(kDrawnStart_ns + 200'000'000);
  competitors.set_waited_ns(50'000'000);
  competitors.add_competitors()->set_thread_name("make");
  competitors.mutable_competitors(0)->set_tid(77);
  competitors.mutable_competitors(0)->set_ns(50'000'000);
  drawn.EndWindow(competitors);
  v1::Competitors nothing;
  nothing.set_begin_mono_ns(kDrawnStart_ns + 300'000'000);
  drawn.EndWindow(nothing);
  hot.set_vcpu_index(7);  // of no set
  drawn.EndWindow(hot);
  drawn.Draw("P");
  Tracing tracing;
  hotspots::GuestKernels symbols;
  symbols.own["guest1"].symbols = *hotspots::Symbols::Parse("1000 T spin\n2000 T end\n");
  std::string trace;
  PerfettoExport exporter(
      [&](std::string_view more) {
        trace += more;
        return absl::OkStatus();
      },
      PerfettoExport::Tracks::kOfVms, symbols);
  ASSERT_TRUE(timeline::ReadTimeline(drawn.Finish(), [&](const timeline::Entry& entry) {
                return exporter.Add(entry);
              }).ok());
  ASSERT_TRUE(exporter.Finish().ok());
  const Seen seen = Decode(trace);
  EXPECT_THAT(InMs(seen.slices.at(std::string(kVcpu) + "/hot code")),
              ElementsAre("100-400 60.0 % spin, 40.0 % 0x2000"));
  EXPECT_THAT(InMs(seen.slices.at(std::string(kVcpu) + "/competitors")),
              ElementsAre("200-400 100.0 % make of the 50 ms that it waited"));
}

TEST(PerfettoExport, MarkersAreInstantsOfTheHost) {
  DrawnRecording drawn;
  drawn.Draw("P[boot]PP[run]P");
  const Seen seen = TraceOfFile(drawn.Finish());
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
  const Seen seen = TraceOfFile(drawn.Finish());
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
  Tracing tracing;
  const auto tick = [](uint32_t vm, int64_t wake_ns) {
    timeline::TickEntry entry{.vm = vm, .epoch = 1};
    entry.sample.wake_ns = wake_ns;
    return entry;
  };
  tracing.Add(DrawnRecording::Session());
  tracing.Add(tick(1, 1000));
  tracing.Add(tick(2, 1001));
  tracing.Add(GapOf(1, v1::Gap::REASON_READ_FAILED, 2000));
  tracing.Add(GapOf(1, v1::Gap::REASON_READ_FAILED, 2500));
  tracing.Add(tick(2, 2600));
  tracing.Add(GapOf(0, v1::Gap::REASON_TICK_MISSED, 2900));
  tracing.Add(tick(1, 3000));
  tracing.Add(tick(2, 3001));
  tracing.Add(GapOf(2, v1::Gap::REASON_QUEUE_FULL, 3500));
  tracing.Add(GapOf(2, v1::Gap::REASON_READ_FAILED, 3600));
  const Seen seen = Decode(tracing.Finish());
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
  const Seen seen = TraceOfFile(drawn.Finish());
  EXPECT_THAT(InMs(seen.slices.at("host1/VM 1 web (PID 1001)/vCPU 0")),
              ElementsAre("0-100 productive"));
  EXPECT_THAT(InMs(seen.slices.at("host1/VM 2 web (PID 1002)/vCPU 0")),
              ElementsAre("0-100 spinning"));
}

TEST(PerfettoExport, TheLifeOfAVmIsInstantsOfItsTrack) {
  DrawnRecording drawn;
  drawn.Draw("PP!");
  const Seen seen = TraceOfFile(drawn.Finish());
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

TEST(PerfettoExport, SlicesSayTheirRulesAndMeanConfidence) {
  DrawnRecording drawn;
  drawn.Draw("PPS");
  const Seen seen = TraceOfFile(drawn.Finish());
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

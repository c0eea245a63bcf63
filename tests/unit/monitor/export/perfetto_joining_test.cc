// What lets a trace stand beside others: its clocks, and the numbers and places of its tracks.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/monitor/export/perfetto_trace.h"

namespace vcpulse::exporting {
namespace {

using check::DrawnRecording;
using check::kDrawnStart_ns;
using ::testing::ElementsAre;
using ::testing::SizeIs;

v1::ClockSnapshot ClockOf(int64_t mono_ns, int64_t boottime_ns, int64_t realtime_ns) {
  v1::ClockSnapshot clock;
  clock.set_mono_ns(mono_ns);
  clock.set_boottime_ns(boottime_ns);
  clock.set_realtime_ns(realtime_ns);
  return clock;
}

// The host had slept for 40 s before the recording, and sleeps 60 s more within.
TEST(PerfettoExport, TimesAreThoseOfBoottime) {
  DrawnRecording drawn;
  drawn.Draw("PPHH");
  const std::string file = ContentsOf(drawn.Finish());
  Tracing tracing;
  int ticks = 0;
  const auto read = timeline::ReadTimelineBytes(
      {reinterpret_cast<const uint8_t*>(file.data()), file.size()},
      [&](const timeline::Entry& entry) {
        if (std::holds_alternative<timeline::TickEntry>(entry.record)) ++ticks;
        const int64_t slept_ns = ticks < 4 ? 40'000'000'000 : 100'000'000'000;
        absl::Status status = tracing.Take(
            {.record = ClockOf(kDrawnStart_ns, kDrawnStart_ns + slept_ns, check::kRealtime_ns)});
        if (status.ok()) status = tracing.Take(entry);
        return status;
      });
  ASSERT_TRUE(read.ok());
  const Seen seen = Decode(tracing.Finish());
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
  Tracing tracing;
  const auto add_clock = [&](int64_t mono_ns, int64_t realtime_ns) {
    tracing.Add(ClockOf(mono_ns, mono_ns + 7, realtime_ns));
  };
  add_clock(1'000'000'000, 50'000'000'000);
  add_clock(2'000'000'000, 51'000'000'100);
  add_clock(3'000'000'000, 99'000'000'000);
  const Seen seen = Decode(tracing.Finish());
  std::vector<uint64_t> realtimes;
  for (const perfetto::TracePacket& packet : seen.trace.packet()) {
    ASSERT_TRUE(packet.has_clock_snapshot());
    realtimes.push_back(packet.clock_snapshot().clocks(2).timestamp());
  }
  EXPECT_THAT(realtimes, ElementsAre(50'000'000'000U, 99'000'000'000U));
}

// As an import has it: its own times stand in BOOTTIME's place.
TEST(PerfettoExport, WithoutBoottimeTheWallClockIsToldAllTheSame) {
  Tracing tracing;
  tracing.Add(ClockOf(1'000, 0, 5'000));
  const Seen seen = Decode(tracing.Finish());
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
    Tracing tracing;
    v1::Session session = DrawnRecording::Session();
    session.set_stream_id(std::string(16, stream));
    timeline::TickEntry tick{.vm = 1, .epoch = 1};
    tick.sample.wake_ns = 1000;
    tracing.Add(session);
    tracing.Add(tick);
    return tracing.Finish();
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
  const Seen seen = TraceOfFile(drawn.Finish());
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

}  // namespace
}  // namespace vcpulse::exporting

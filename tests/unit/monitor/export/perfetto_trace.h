#pragma once

// Perfetto traces of the tests, and what their reader sees of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "monitor/export/perfetto.h"
#include "monitor/timeline/reader.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::exporting {

struct Slice {
  std::string name;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;

  bool operator==(const Slice&) const = default;
};

inline void PrintTo(const Slice& slice, std::ostream* out) {
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
inline Seen Decode(const std::string& bytes) {
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
    const perfetto::TrackEvent& event = packet.track_event();
    EXPECT_TRUE(paths.contains(event.track_uuid()));
    const std::string& path = paths[event.track_uuid()];
    const auto time_ns = static_cast<int64_t>(packet.timestamp());
    switch (event.type()) {
      case perfetto::TrackEvent::SLICE_BEGIN:
        open[path].push_back({.name = event.name(), .begin_ns = time_ns});
        break;
      case perfetto::TrackEvent::SLICE_END:
        EXPECT_FALSE(open[path].empty()) << path;
        if (open[path].empty()) break;
        open[path].back().end_ns = time_ns;
        seen.slices[path].push_back(open[path].back());
        open[path].pop_back();
        break;
      case perfetto::TrackEvent::INSTANT:
        seen.instants[path].emplace_back(time_ns, event.name());
        break;
      case perfetto::TrackEvent::COUNTER:
        EXPECT_TRUE(event.has_double_counter_value());
        seen.counters[path].emplace_back(time_ns, event.double_counter_value());
        break;
      default:
        ADD_FAILURE() << packet.ShortDebugString();
    }
  }
  for (const auto& [path, slices] : open) EXPECT_THAT(slices, ::testing::IsEmpty()) << path;
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

// An export into memory.
class Tracing {
 public:
  explicit Tracing(PerfettoExport::Tracks tracks = PerfettoExport::Tracks::kOfVms)
      : exporter_(
            [this](std::string_view more) {
              trace_ += more;
              return absl::OkStatus();
            },
            tracks) {}
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  absl::Status Take(const timeline::Entry& entry) { return exporter_.Add(entry); }
  // The next record of a stream.
  template <typename Record>
  void Add(Record record) {
    EXPECT_TRUE(Take({.sequence = ++sequence_, .record = std::move(record)}).ok());
  }
  std::string Finish() {
    EXPECT_TRUE(exporter_.Finish().ok());
    return trace_;
  }

 private:
  std::string trace_;
  PerfettoExport exporter_;
  uint64_t sequence_ = 0;
};

inline std::string ExportBytes(std::span<const uint8_t> bytes,
                               PerfettoExport::Tracks tracks = PerfettoExport::Tracks::kOfVms) {
  Tracing tracing(tracks);
  const auto read = timeline::ReadTimelineBytes(
      bytes, [&](const timeline::Entry& entry) { return tracing.Take(entry); });
  EXPECT_TRUE(read.ok()) << read.status();
  return tracing.Finish();
}

inline std::string ContentsOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline Seen TraceOfFile(const std::string& path) {
  const std::string file = ContentsOf(path);
  return Decode(ExportBytes({reinterpret_cast<const uint8_t*>(file.data()), file.size()}));
}

// Slices in ms after the start of a drawn recording.
inline std::vector<std::string> InMs(const std::vector<Slice>& slices) {
  std::vector<std::string> texts;
  for (const Slice& slice : slices) {
    const auto ms = [](int64_t ns) {
      return std::to_string((ns - check::kDrawnStart_ns) / 1'000'000);
    };
    texts.push_back(ms(slice.begin_ns) + "-" + ms(slice.end_ns) + " " + slice.name);
  }
  return texts;
}

inline constexpr char kVcpu[] = "host1/VM 1 guest1 (PID 1001)/vCPU 0";

}  // namespace vcpulse::exporting

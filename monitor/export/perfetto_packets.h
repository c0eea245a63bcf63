#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "monitor/export/exporter.h"
#include "monitor/export/text_output.h"
#include "perfetto_subset.pb.h"

namespace vcpulse::exporting {

// Writes the packets of one Perfetto trace, all of one sequence. Times are ns of CLOCK_BOOTTIME.
// One thread.
class PerfettoPackets {
 public:
  explicit PerfettoPackets(Sink sink);

  // Tracks have uuids from 1; a parent of 0 is none. Siblings of one name stay apart.
  void AddTrack(uint64_t uuid, uint64_t parent, const std::string& name);
  // `unit`: empty where there is none.
  void AddCounterTrack(uint64_t uuid, uint64_t parent, const std::string& name,
                       const std::string& unit);
  void AddSnapshot(int64_t boottime_ns, int64_t mono_ns, std::optional<int64_t> realtime_ns);

  void BeginSlice(uint64_t track, int64_t time_ns, const std::string& name);
  void EndSlice(uint64_t track, int64_t time_ns);
  void AddInstant(uint64_t track, int64_t time_ns, const std::string& name);
  void AddCounter(uint64_t track, int64_t time_ns, double value);

  // As those of TextOutput.
  absl::Status EndRow() { return out_.EndRow(); }
  absl::Status Flush() { return out_.Flush(); }

 private:
  void Write(const perfetto::TracePacket& packet);
  perfetto::TrackEvent& EventAt(int64_t time_ns, uint64_t track, perfetto::TrackEvent::Type type);

  TextOutput out_;
  perfetto::TracePacket packet_;   // kept for its memory
  perfetto::TracePacket counter_;  // most packets: only its time, track and value change
};

}  // namespace vcpulse::exporting

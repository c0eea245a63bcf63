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

  // Makes the uuids of tracks, and of the sequence, those of this stream: traces of two streams,
  // one behind the other, are then one trace. Of no effect once a packet was written.
  void Begin(const std::string& stream_id);

  // A track, and its place among its siblings. `number` is from 1 and this trace's own; a parent of
  // 0 is none. Siblings of one name stay apart.
  struct Track {
    uint64_t number = 0;
    uint64_t parent = 0;
    std::string name;
    int32_t rank = 0;
  };
  void AddTrack(const Track& track);
  // `unit`: empty where there is none.
  void AddCounterTrack(const Track& track, const std::string& unit);
  // That of a thread, which a trace of the host's scheduler has as well.
  void AddThreadTrack(uint64_t number, uint32_t pid, uint32_t tid);
  void AddSnapshot(int64_t boottime_ns, std::optional<int64_t> mono_ns,
                   std::optional<int64_t> realtime_ns);

  // What is shown of a slice beside its name.
  struct Arguments {
    std::string rule;  // empty: none
    std::optional<double> confidence;
  };
  void BeginSlice(uint64_t track, int64_t time_ns, const std::string& category,
                  const std::string& name);
  void EndSlice(uint64_t track, int64_t time_ns, const Arguments& arguments = {});
  void AddInstant(uint64_t track, int64_t time_ns, const std::string& category,
                  const std::string& name);
  // Holds until the next one. NaN: not known, which trace_processor gives back as NULL.
  void AddCounter(uint64_t track, int64_t time_ns, double value);

  // As those of TextOutput.
  absl::Status EndRow() { return out_.EndRow(); }
  absl::Status Flush() { return out_.Flush(); }

 private:
  void Write(const perfetto::TracePacket& packet);
  perfetto::TrackDescriptor& Describe(const Track& track);
  perfetto::TrackEvent& EventAt(int64_t time_ns, uint64_t track, perfetto::TrackEvent::Type type);

  TextOutput out_;
  bool begun_ = false;
  uint64_t first_uuid_ = 0;  // a track's is so much more than its number
  uint32_t sequence_ = 1;
  perfetto::TracePacket packet_;   // kept for its memory
  perfetto::TracePacket counter_;  // most packets: only its time, track and value change
};

}  // namespace vcpulse::exporting

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/metric/metric.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::report {

// What was measured in each phase: from each marker of its name to the next marker, as with
// --phase. Fed in the order of the stream. Memory grows with markers, vCPUs and up to kMostPhases
// names of phases. One thread.
class PhaseTotals {
 public:
  static constexpr size_t kMostPhases = 100;

  // All spans of one phase together.
  struct Phase {
    std::string name;
    uint64_t spans = 0;
    int64_t ended_ns = 0;  // length of the spans that another marker ended
    std::map<std::pair<uint32_t, uint32_t>, metric::Totals> vcpus{};  // by (VM, index)
  };

  PhaseTotals() = default;
  // The markers of the whole stream are known beforehand; those of the stream are ignored.
  static PhaseTotals Knowing(const PhaseTotals& other);

  void Add(const v1::Marker& marker);
  // `place_ns`: reading::PlaceOf its tick.
  void Add(const metric::Interval& interval, int64_t place_ns);

  // In the order of their first marker.
  const std::vector<Phase>& phases() const { return phases_; }
  // Markers whose phases are not kept, as there are too many of them.
  uint64_t spans_omitted() const { return spans_omitted_; }
  // Of all spans of that phase; the last span of the stream ends at `end_mono_ns`.
  int64_t LengthNs(size_t phase, int64_t end_mono_ns) const;
  // Whether the stamp of a marker lies before a tick that came before it, so that this tick was
  // counted for the phase before. Reading again with Knowing() counts it right.
  bool CameLate() const { return came_late_; }

 private:
  struct Mark {
    int64_t from_ns = 0;  // CLOCK_MONOTONIC, never before that of the mark before it
    size_t phase = 0;     // of phases_; beyond them: one that is not kept
  };

  std::vector<Phase> phases_;
  std::map<std::string, size_t> by_name_;
  std::vector<Mark> marks_;
  bool all_marks_known_ = false;
  uint64_t spans_omitted_ = 0;
  std::optional<int64_t> latest_ns_;  // of the places so far
  bool came_late_ = false;
};

}  // namespace vcpulse::report

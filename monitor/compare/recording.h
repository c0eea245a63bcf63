#pragma once

// One of the timelines: what is in it, and its series: a vCPU in a phase, cut into short cells
// of time.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/check/timetable.h"
#include "monitor/metric/metric.h"
#include "monitor/reading/part.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::compare {

// Some ticks in a row.
struct Cell {
  metric::Totals totals;
  int64_t length_ns = 0;
  bool begins =
      false;  // does not go on from the cell before: a gap, an epoch or a span lies between
};

// Keeps at most so many cells: beyond that, neighbours are joined two by two and later cells are as
// wide. A cell never reaches over a break (`begins`), unless breaks alone are too many. One thread.
class Series {
 public:
  static constexpr size_t kMostCells = 1024;
  static constexpr size_t kFewestCells = 64;  // that Limit may ask for

  // That of the next tick.
  void Add(const metric::Interval& interval, bool begins);
  // At most so many cells from now on.
  void Limit(size_t most_cells);

  std::span<const Cell> cells() const { return cells_; }
  const metric::Totals& total() const { return total_; }
  int64_t length_ns() const { return length_ns_; }
  uint64_t ticks() const { return ticks_; }

 private:
  void Fold();

  std::vector<Cell> cells_;
  size_t most_cells_ = kMostCells;
  int64_t width_ns_ = 0;  // of a cell; 0: a tick
  metric::Totals total_;
  int64_t length_ns_ = 0;
  uint64_t ticks_ = 0;
};

// Instances of one VM: it may have been restarted under its name.
struct VmGroup {
  std::string label;  // for people: its name, or "pid-7"
  std::string name;
  std::string uuid;
  std::vector<uint32_t> numbers;  // in the stream
};

struct SeriesKey {
  size_t group = 0;
  uint32_t vcpu = 0;
  size_t phase = 0;  // place among those asked for

  auto operator<=>(const SeriesKey&) const = default;
};

// What the second reading brings.
struct Measured {
  std::map<SeriesKey, Series> series;
  std::set<std::string> classifiers;
  std::set<std::string> event_sets;
  bool degraded = false;  // in some of the time no hardware counter was read
  uint64_t unusable_ticks = 0;
};

class Recording {
 public:
  // The first reading. `label` is what people call it: "A", "B2". Errors, naming the file: of
  // timeline::ReadTimeline; InvalidArgument where it holds two recordings, or nothing.
  static absl::StatusOr<Recording> Open(const std::string& path, std::string label);

  const check::Timetable& timetable() const { return timetable_; }
  const timeline::ReadReport& read() const { return read_; }
  std::string Name() const { return input_.Name(); }
  const std::string& label() const { return label_; }
  // Each VM that had a vCPU: instances of one name, one after the other, are one.
  std::vector<VmGroup> Groups() const;

  // The second reading: the series of `groups` in the spans of `phases`; nothing for a phase is the
  // whole recording. As in reading::ReadPart, a tick belongs to the span that it was taken in. At
  // most 2^20 cells in all, but 64 of each vCPU and phase. Errors: of reading.
  absl::StatusOr<Measured> Measure(const std::vector<VmGroup>& groups,
                                   const std::vector<std::optional<std::string>>& phases) const;

 private:
  Recording(reading::RepeatableInput input, std::string label)
      : input_(std::move(input)), label_(std::move(label)) {}

  reading::RepeatableInput input_;
  std::string label_;
  check::Timetable timetable_;
  timeline::ReadReport read_;
};

}  // namespace vcpulse::compare

#pragma once

// One vCPU in one phase, cut into short cells of time. Pure.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "monitor/metric/metric.h"

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

}  // namespace vcpulse::compare

#include "monitor/compare/series.h"

#include <algorithm>

namespace vcpulse::compare {
namespace {

// Cells are never as long: 36 years, so that nothing made of it overflows.
constexpr int64_t kWidest_ns = int64_t{1} << 60;

}  // namespace

void Series::Add(const metric::Interval& interval, bool begins) {
  const int64_t length_ns = interval.delta.interval_ns;
  metric::Totals totals;
  totals.Add(interval);
  total_.Add(totals);
  length_ns_ += length_ns;
  ++ticks_;
  const bool fits = !begins && !cells_.empty() && cells_.back().length_ns + length_ns <= width_ns_;
  if (fits) {
    cells_.back().totals.Add(totals);
    cells_.back().length_ns += length_ns;
    return;
  }
  if (cells_.size() >= most_cells_) Fold();
  cells_.push_back({.totals = totals, .length_ns = length_ns, .begins = begins || cells_.empty()});
}

void Series::Limit(size_t most_cells) {
  most_cells_ = std::max(most_cells, kFewestCells);
  while (cells_.size() > most_cells_) Fold();
}

void Series::Fold() {
  // A little more than two ticks, as no tick is as long as another.
  const int64_t mean_ns = length_ns_ / static_cast<int64_t>(cells_.size());
  width_ns_ = std::min(kWidest_ns, std::max(2 * width_ns_, mean_ns / 4 * 9));
  const auto join = [this](bool over_breaks) {
    size_t kept = 0;
    for (size_t i = 0; i < cells_.size(); ++i) {
      const bool second =
          i + 1 < cells_.size() && (over_breaks || !cells_[i + 1].begins) &&
          (over_breaks || cells_[i].length_ns + cells_[i + 1].length_ns <= width_ns_);
      Cell cell = cells_[i];
      if (second) {
        cell.totals.Add(cells_[i + 1].totals);
        cell.length_ns += cells_[i + 1].length_ns;
        ++i;
      }
      cells_[kept++] = cell;
    }
    cells_.resize(kept);
  };
  const size_t enough = cells_.size() * 3 / 4;
  join(false);
  // Breaks every other tick: what is left of them is not worth memory without bound.
  if (cells_.size() > enough) join(true);
}

}  // namespace vcpulse::compare

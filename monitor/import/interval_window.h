#pragma once

// The intervals of rows that are read batch by batch, in order of time although rows may be out of
// it: a bounded window of rows is held back. Times are ns of the rows' clock. One thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/import/intervals.h"
#include "monitor/import/table.h"

namespace vcpulse::importing {

// Finds the intervals of rows that come batch by batch, in order of time, with a bounded window of
// rows that may be out of order.
class IntervalFinder {
 public:
  // Holds at least `window` intervals back until the last batch.
  explicit IntervalFinder(size_t window) : window_(window) {}

  // Takes the rows of `table` from `first` on. Without t_ns an interval ends where the sum of the
  // vCPU's dt_ns so far says. Errors: InvalidArgument with row and column for a row with neither;
  // OutOfRange for one that ends before intervals that were released.
  absl::Status Take(const Table& table, size_t first);

  // Those that no later row may come before, all after the last batch, by (end, vm, vcpu); with
  // `by_tick`, all of a tick or none. Without dt_ns an interval goes back to its vCPU's row before.
  // Errors: InvalidArgument with row and column for a repeated (vm, vcpu, t_ns), for intervals that
  // overlap, for times beyond the interval and time_running_ns beyond time_enabled_ns.
  absl::StatusOr<std::vector<Interval>> Release(const Table& table, bool last, bool by_tick);

  // Drops the rows of released intervals.
  void Compact(Table& table);

  // Rows without dt_ns that are their vCPU's first: they only say when the next one's began, and
  // what they counted belongs to no interval.
  uint64_t only_begin() const { return only_begin_; }

 private:
  using VcpuKey = std::pair<uint32_t, uint32_t>;  // (vm, vcpu)

  size_t window_;
  std::vector<Interval> waiting_;
  std::map<VcpuKey, uint64_t> last_taken_;    // end
  std::map<VcpuKey, int64_t> last_released_;  // end
  int64_t released_ns_ = -1;                  // end of the last one
  uint64_t only_begin_ = 0;
};

// Takes intervals in order of time, as they are released. An error ends the reading.
using IntervalSink = std::function<absl::Status(std::vector<Interval>)>;

// Reads all rows from where `reader` stands, `window` at once; `rows` sees each batch first. Rows
// of released intervals are dropped from the reader's table. Gives IntervalFinder::only_begin.
// Errors: those of the reader, of IntervalFinder and of `sink`.
absl::StatusOr<uint64_t> ScanIntervals(RowReader& reader, size_t window, bool by_tick,
                                       const std::function<void(std::span<const Row>)>& rows,
                                       const IntervalSink& sink);

}  // namespace vcpulse::importing

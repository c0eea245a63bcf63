#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/import/table.h"

namespace vcpulse::importing {

// What one row covers.
struct Interval {
  size_t row = 0;  // in Table::rows
  uint32_t vm = 0;
  uint32_t vcpu = 0;
  uint64_t instant = 0;  // the same for those that were sampled together: a tick, or end_ns
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // t_ns
  uint64_t time_enabled_ns = 0;
  uint64_t time_running_ns = 0;

  int64_t Length_ns() const { return end_ns - begin_ns; }
};

struct Intervals {
  // By (instant, vm, vcpu): those of one tick are one instant where all rows have a tick that
  // agrees with the order of time, else those that end together.
  std::vector<Interval> all;
  // Rows without dt_ns that are their vCPU's first: they only say when the next one's began, and
  // what they counted belongs to no interval.
  uint64_t only_begin = 0;
  bool by_tick = false;  // Interval::instant is a tick's number

  int64_t Median_ns() const;  // of the lengths; 0 where there is none
};

// The rows of `table` in order of time. Without dt_ns an interval goes back to its vCPU's row
// before; without t_ns it ends where the sum of the vCPU's dt_ns so far says. Times of the counters
// that are absent are substituted as Substitutions() tells. Errors: InvalidArgument with row and
// column for a row with neither, for a repeated (vm, vcpu, t_ns), for intervals that overlap, and
// for times beyond the interval or time_running_ns beyond time_enabled_ns.
absl::StatusOr<Intervals> FindIntervals(const Table& table, std::optional<double> max_hz);

// What stands for the times that rows with these cells lack, for people.
std::vector<std::string> Substitutions(const FieldSet& present, bool cycles_counted,
                                       bool max_hz_known);

}  // namespace vcpulse::importing

#pragma once

#include <algorithm>
#include <cstdint>

namespace vcpulse::core {

// Deadlines of the ticks: start + n * interval on CLOCK_MONOTONIC, whatever happened before. A late
// tick is taken when it is; a missed one is not caught up.
class Schedule {
 public:
  // Instants and durations in ns; interval_ns > 0.
  Schedule(int64_t start_ns, int64_t interval_ns)
      : start_ns_(start_ns), interval_ns_(interval_ns) {}

  int64_t DeadlineOf(uint64_t tick) const {
    return start_ns_ + static_cast<int64_t>(tick) * interval_ns_;
  }

  // The tick to wait for after having finished `tick` at `now_ns`: the first one after it whose
  // deadline has not passed yet. Those between are missed.
  uint64_t Next(uint64_t tick, int64_t now_ns) const {
    const int64_t since_start_ns = now_ns - start_ns_;
    if (since_start_ns <= 0) return tick + 1;
    // The smallest n with start + n * interval >= now.
    const int64_t due = (since_start_ns + interval_ns_ - 1) / interval_ns_;
    return std::max(tick + 1, static_cast<uint64_t>(due));
  }

 private:
  int64_t start_ns_;
  int64_t interval_ns_;
};

}  // namespace vcpulse::core

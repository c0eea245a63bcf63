#include "monitor/core/schedule.h"

#include <algorithm>

namespace vcpulse::core {

uint64_t Schedule::Next(uint64_t tick, int64_t now_ns) const {
  const int64_t since_start_ns = now_ns - start_ns_;
  if (since_start_ns <= 0) return tick + 1;
  // The smallest n with start + n * interval >= now.
  const int64_t due = (since_start_ns + interval_ns_ - 1) / interval_ns_;
  return std::max(tick + 1, static_cast<uint64_t>(due));
}

}  // namespace vcpulse::core

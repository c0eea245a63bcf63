#include "monitor/check/spans.h"

#include <algorithm>

namespace vcpulse::check {

int64_t WithinReason(int64_t instant_ns) {
  constexpr int64_t kFurthest_ns = int64_t{1} << 60;
  return std::clamp(instant_ns, -kFurthest_ns, kFurthest_ns);
}

std::vector<TimeRange> Joined(std::vector<TimeRange> stretches) {
  std::ranges::sort(stretches, {}, &TimeRange::from_ns);
  std::vector<TimeRange> joined;
  for (const TimeRange& stretch : stretches) {
    if (stretch.Length() <= 0) continue;
    if (!joined.empty() && stretch.from_ns <= joined.back().to_ns) {
      joined.back().to_ns = std::max(joined.back().to_ns, stretch.to_ns);
    } else {
      joined.push_back(stretch);
    }
  }
  return joined;
}

std::vector<TimeRange> Common(std::span<const TimeRange> spans,
                              std::span<const TimeRange> windows) {
  std::vector<TimeRange> common;
  for (const TimeRange& span : spans) {
    if (span.Length() <= 0) continue;
    // The first window that does not end before the span begins.
    auto window = std::ranges::upper_bound(windows, span.from_ns, {}, &TimeRange::to_ns);
    for (; window != windows.end() && window->from_ns < span.to_ns; ++window) {
      common.push_back({.from_ns = std::max(span.from_ns, window->from_ns),
                        .to_ns = std::min(span.to_ns, window->to_ns)});
    }
  }
  return common;
}

int64_t TotalLength(std::span<const TimeRange> stretches) {
  int64_t total_ns = 0;
  for (const TimeRange& stretch : stretches) total_ns += stretch.Length();
  return total_ns;
}

}  // namespace vcpulse::check

#include "tests/accuracy/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace vcpulse::accuracy {

std::optional<double> Share::Value() const {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::optional<Bounds> Wilson95(const Share& share) {
  const std::optional<double> p = share.Value();
  if (!p) return std::nullopt;
  constexpr double z = 1.959963984540054;
  const auto n = static_cast<double>(share.whole);
  const double scale = 1 / (1 + z * z / n);
  const double centre = (*p + z * z / (2 * n)) * scale;
  const double half = z * std::sqrt(*p * (1 - *p) / n + z * z / (4 * n * n)) * scale;
  return Bounds{.low = std::max(0.0, centre - half), .high = std::min(1.0, centre + half)};
}

std::optional<double> Delays::Mean() const {
  return Share{.part = ticks, .whole = changes - missed}.Value();
}

Delays& Delays::operator+=(const Delays& other) {
  changes += other.changes;
  missed += other.missed;
  ticks += other.ticks;
  longest = std::max(longest, other.longest);
  return *this;
}

Delays DetectionDelays(std::span<const int> truth, std::span<const int> shown) {
  Delays delays;
  std::optional<int> before;
  for (size_t i = 0; i < truth.size(); ++i) {
    if (truth[i] < 0) continue;
    const bool changed = before && *before != truth[i];
    before = truth[i];
    if (!changed) continue;
    ++delays.changes;
    size_t seen = i;
    while (seen < truth.size() && truth[seen] == truth[i] && shown[seen] != truth[i]) ++seen;
    if (seen == truth.size() || truth[seen] != truth[i]) {
      ++delays.missed;
      continue;
    }
    delays.ticks += seen - i;
    delays.longest = std::max<uint64_t>(delays.longest, seen - i);
  }
  return delays;
}

}  // namespace vcpulse::accuracy

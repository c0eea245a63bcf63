#include "monitor/replay/pace.h"

#include <algorithm>
#include <variant>

namespace vcpulse::replay {
namespace {

constexpr int64_t kFurthestMarker_ns = 1'000'000'000;
// Due times stay far from the ends of their type, whatever a damaged file says.
constexpr double kLongestReplay_ns = 1e18;

}  // namespace

std::optional<int64_t> Pace::DueNs(const timeline::Entry& entry, int64_t now_ns) {
  if (entry.sequence == 0 || std::holds_alternative<v1::VcpuSet>(entry.record)) {
    return std::nullopt;
  }
  const std::optional<int64_t> instant = timeline::InstantOf(entry);
  if (!instant) return std::nullopt;
  const bool is_marker = std::holds_alternative<v1::Marker>(entry.record);
  if (!latest_ns_) {
    if (is_marker) return std::nullopt;
    latest_ns_ = *instant;
    begin_ns_ = now_ns;
    return now_ns;
  }
  if (*instant > *latest_ns_) {
    // Modulo 2^64: only a damaged file has instants so far apart, and those are cut below.
    const auto apart =
        static_cast<int64_t>(static_cast<uint64_t>(*instant) - static_cast<uint64_t>(*latest_ns_));
    if (apart < 0 || (is_marker && apart > kFurthestMarker_ns)) return std::nullopt;
    const int64_t pause = std::min(apart, options_.longest_pause_ns);
    played_ns_ = pause > std::numeric_limits<int64_t>::max() - played_ns_
                     ? std::numeric_limits<int64_t>::max()
                     : played_ns_ + pause;
    latest_ns_ = *instant;
  }
  return begin_ns_ + static_cast<int64_t>(std::min(static_cast<double>(played_ns_) / options_.speed,
                                                   kLongestReplay_ns));
}

}  // namespace vcpulse::replay

#include "monitor/core/residency.h"

#include <algorithm>

namespace vcpulse::core {
namespace {

// A rate over less than this is noise: one interrupt in it changes it by percents.
constexpr uint64_t kShortestForRate_ns = 1'000'000;

}  // namespace

std::optional<double> Residency(const VcpuDelta& delta, const EventSlots& slots,
                                const ResidencyBasis& basis) {
  if (!slots.cycles && !slots.ref_cycles) return std::nullopt;
  if (delta.time_enabled_ns == 0) return 0.0;
  if (delta.time_running_ns == 0 || delta.interval_ns <= 0) return std::nullopt;

  const double q = std::min(
      1.0, static_cast<double>(delta.time_running_ns) / static_cast<double>(delta.time_enabled_ns));
  const double seconds = static_cast<double>(delta.interval_ns) * 1e-9 * q;
  double share = 0;
  if (slots.ref_cycles && basis.tsc_hz) {
    share = static_cast<double>(delta.counts.at(*slots.ref_cycles)) / (*basis.tsc_hz * seconds);
  } else if (slots.cycles && basis.max_hz) {
    share = static_cast<double>(delta.counts.at(*slots.cycles)) / (*basis.max_hz * seconds);
  } else {
    return std::nullopt;
  }
  return std::min(1.0, share);
}

void ResidencyEstimator::Observe(const VcpuDelta& delta, const EventSlots& slots) {
  if (!slots.cycles || delta.time_running_ns < kShortestForRate_ns) return;
  const double hz = static_cast<double>(delta.counts.at(*slots.cycles)) * 1e9 /
                    static_cast<double>(delta.time_running_ns);
  if (hz > basis_.max_hz.value_or(0)) basis_.max_hz = hz;
}

}  // namespace vcpulse::core

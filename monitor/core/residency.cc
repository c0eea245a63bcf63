#include "monitor/core/residency.h"

#include <algorithm>
#include <utility>

#include "monitor/core/presence.h"

namespace vcpulse::core {
namespace {

// A rate over less than this is noise: one interrupt in it changes it by percents.
constexpr uint64_t kShortestForRate_ns = 1'000'000;
// No core that runs guests is clocked below this: such a rate is of a thread that was mostly in
// host mode.
constexpr double kLowestRate_hz = 1e8;

}  // namespace

bool UsesRefCycles(const VcpuDelta& delta, const EventSlots& slots, const ResidencyBasis& basis) {
  if (!slots.ref_cycles || !basis.tsc_hz) return false;
  const bool only_cycles_count =
      slots.cycles && delta.NeverCounted(*slots.ref_cycles) && !delta.NeverCounted(*slots.cycles);
  return !only_cycles_count;
}

std::optional<double> Residency(const VcpuDelta& delta, const EventSlots& slots,
                                const ResidencyBasis& basis) {
  if (!slots.cycles && !slots.ref_cycles) return std::nullopt;
  if (delta.time_enabled_ns == 0) return 0.0;
  if (delta.time_running_ns == 0 || delta.interval_ns <= 0) return std::nullopt;
  const bool never_counted = delta.NeverCounted(slots.cycles ? *slots.cycles : *slots.ref_cycles);
  if (never_counted && delta.ran_since_start_ns >= uint64_t{kEnoughToCount_ns}) return std::nullopt;

  const double q = std::min(
      1.0, static_cast<double>(delta.time_running_ns) / static_cast<double>(delta.time_enabled_ns));
  const double seconds = static_cast<double>(delta.interval_ns) * 1e-9 * q;
  const auto share = [&](size_t slot, double highest_hz) {
    return std::min(1.0, static_cast<double>(delta.counts.at(slot)) / (highest_hz * seconds));
  };
  if (UsesRefCycles(delta, slots, basis)) return share(*slots.ref_cycles, *basis.tsc_hz);
  if (slots.cycles && basis.max_hz) return share(*slots.cycles, *basis.max_hz);
  return std::nullopt;
}

std::optional<double> Residency(std::span<const VcpuDelta> deltas, const EventSlots& slots,
                                std::span<const ResidencyBasis> bases) {
  if (deltas.size() == 1) return Residency(deltas.front(), slots, bases.front());
  if (bases.size() < deltas.size()) return std::nullopt;
  if (!slots.cycles && !slots.ref_cycles) return std::nullopt;
  const uint64_t enabled_ns = deltas.front().time_enabled_ns;
  if (enabled_ns == 0) return 0.0;
  double share = 0;
  uint64_t running_ns = 0;
  for (size_t pmu = 0; pmu < deltas.size(); ++pmu) {
    VcpuDelta part = deltas[pmu];
    running_ns += part.time_running_ns;
    part.time_enabled_ns = part.time_running_ns;  // its own cores' share, not extrapolated
    const std::optional<double> on_pmu = Residency(part, slots, bases[pmu]);
    if (!on_pmu) return std::nullopt;
    share += *on_pmu;
  }
  if (running_ns == 0) return std::nullopt;
  const double q = std::min(1.0, static_cast<double>(running_ns) / static_cast<double>(enabled_ns));
  return std::min(1.0, share / q);
}

std::optional<double> ResidencyAtMost(std::span<const VcpuDelta> deltas, const EventSlots& slots,
                                      std::span<const ResidencyBasis> bases,
                                      const std::optional<double>& residency) {
  if (!residency || bases.size() < deltas.size()) return residency;
  for (size_t pmu = 0; pmu < deltas.size(); ++pmu) {
    if (UsesRefCycles(deltas[pmu], slots, bases[pmu])) continue;
    const double on_cpu = static_cast<double>(deltas.front().time_enabled_ns) /
                          static_cast<double>(deltas.front().interval_ns);
    return std::clamp(on_cpu, *residency, 1.0);
  }
  return residency;
}

ResidencyEstimator::ResidencyEstimator(std::vector<ResidencyBasis> initial)
    : bases_(std::move(initial)) {
  if (bases_.empty()) bases_.emplace_back();
}

void ResidencyEstimator::Observe(const VcpuDelta& delta, const EventSlots& slots, size_t pmu) {
  while (bases_.size() <= pmu) bases_.push_back({.tsc_hz = bases_.front().tsc_hz, .max_hz = {}});
  if (!slots.cycles || delta.time_running_ns < kShortestForRate_ns) return;
  const double cycles_e9 = static_cast<double>(delta.counts.at(*slots.cycles)) * 1e9;
  const auto running_ns = static_cast<double>(delta.time_running_ns);
  ResidencyBasis& basis = bases_[pmu];
  if (cycles_e9 > basis.max_hz.value_or(kLowestRate_hz) * running_ns) {
    basis.max_hz = cycles_e9 / running_ns;
  }
}

}  // namespace vcpulse::core

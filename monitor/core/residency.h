#pragma once

// Residency: the share of an interval in which a vCPU ran guest code.

#include <optional>

#include "monitor/core/delta.h"
#include "monitor/core/event_slots.h"

namespace vcpulse::core {

// What residency is divided by, in Hz; absent where unknown.
struct ResidencyBasis {
  std::optional<double> tsc_hz;  // for ref-cycles
  std::optional<double> max_hz;  // for cycles: the highest core frequency known or seen

  bool operator==(const ResidencyBasis&) const = default;
};

// Share of the interval in which guest code ran, 0..1: ref-cycles / (tsc_hz * dt * q), else
// cycles / (max_hz * dt * q), q = running / enabled. With cycles it is a lower bound: a core below
// its highest frequency shows less. 0 where the thread was off the CPU throughout. Nothing where
// the group did not run, neither event is counted, or no frequency is known.
std::optional<double> Residency(const VcpuDelta& delta, const EventSlots& slots,
                                const ResidencyBasis& basis);

// Keeps the highest rate of cycles per time *running* seen on this host. Per time elapsed would
// make a vCPU that shares its CPU look full. The same deltas in the same order give the same basis,
// live and offline.
class ResidencyEstimator {
 public:
  explicit ResidencyEstimator(ResidencyBasis initial) : basis_(initial) {}

  // Takes in one delta, before its own residency is asked for. Deltas that ran too shortly for a
  // rate (below 1 ms) are passed over.
  void Observe(const VcpuDelta& delta, const EventSlots& slots);

  const ResidencyBasis& basis() const { return basis_; }

 private:
  ResidencyBasis basis_;
};

}  // namespace vcpulse::core

#pragma once

// Residency: the share of an interval in which a vCPU ran guest code.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

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
// the group did not run or has counted nothing for kEnoughToCount_ns since its epoch began, neither
// event is counted, or no frequency is known.
std::optional<double> Residency(const VcpuDelta& delta, const EventSlots& slots,
                                const ResidencyBasis& basis);

// Whether that comes from ref-cycles. Those that stay 0 since the epoch began while cycles count
// are not believed: some virtual PMUs open the event and count nothing.
bool UsesRefCycles(const VcpuDelta& delta, const EventSlots& slots, const ResidencyBasis& basis);

// On a hybrid host: `deltas` are one vCPU's groups with the same events, one per core PMU, `bases`
// what each PMU's cycles are divided by. Each PMU runs only on its own cores, so the shares of all
// of them add up, over the q of all together: sum(share on the PMU) / (sum(running) / enabled). One
// of each is the plain case above. Nothing where a PMU that ran has no basis.
std::optional<double> Residency(std::span<const VcpuDelta> deltas, const EventSlots& slots,
                                std::span<const ResidencyBasis> bases);

// What the residency of the same interval cannot be above: itself where all of it comes from
// ref-cycles, else the share of the time on a CPU, guest or host code.
std::optional<double> ResidencyAtMost(std::span<const VcpuDelta> deltas, const EventSlots& slots,
                                      std::span<const ResidencyBasis> bases,
                                      const std::optional<double>& residency);

// Keeps the highest rate of cycles per time *running* seen on this host, for each core PMU. Per
// time elapsed would make a vCPU that shares its CPU look full. The same deltas in the same order
// give the same bases, live and offline.
class ResidencyEstimator {
 public:
  // One basis per core PMU; none is one of which nothing is known.
  explicit ResidencyEstimator(std::vector<ResidencyBasis> initial);

  // Takes in one delta of the group on core PMU `pmu` (0 on most hosts; one that is not known yet
  // is added), before its own residency is asked for. Deltas that ran too shortly for a rate (below
  // 1 ms), and rates that no CPU has (up to 100 MHz), are passed over.
  void Observe(const VcpuDelta& delta, const EventSlots& slots, size_t pmu = 0);

  // Of the first core PMU.
  const ResidencyBasis& basis() const { return bases_.front(); }
  std::span<const ResidencyBasis> bases() const { return bases_; }

 private:
  std::vector<ResidencyBasis> bases_;
};

}  // namespace vcpulse::core

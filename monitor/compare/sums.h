#pragma once

// What a vCPU did in some time, as sums that add up, and the quantities that are ratios of them.

#include <array>
#include <cstddef>
#include <optional>

#include "monitor/check/expression.h"

namespace vcpulse::compare {

using check::Metric;

// What is compared of each vCPU. Shares are 0..1, IPC is instructions per cycle.
inline constexpr std::array kMetrics = {Metric::kHalted,  Metric::kSpinning, Metric::kProductive,
                                        Metric::kUnknown, Metric::kStarved,  Metric::kResidency,
                                        Metric::kIpc};

// Each quantity counts what `report` counts, so that both show the same numbers.
struct Sums {
  // HALTED, SPINNING, PRODUCTIVE, UNKNOWN: in the order of kMetrics.
  std::array<double, 4> band_ns{};
  double no_counters_ns = 0;  // thereof UNKNOWN as no hardware counter was read
  double starved_ns = 0;
  double starved_known_ns = 0;  // judged time in which waiting was measured, or seen
  double resident_ns = 0;       // sum of residency x interval
  double residency_known_ns = 0;
  double cycles = 0;  // of intervals judged other than HALTED
  double instructions = 0;

  void operator+=(const Sums& other);
};

struct Ratio {
  double part = 0;
  double whole = 0;

  // Nothing where nothing was measured.
  std::optional<double> Value() const {
    if (whole <= 0) return std::nullopt;
    return part / whole;
  }
};

// Whether no hardware counter was read in all of the judged time.
bool IsDegraded(const Sums& sums);

// Of one of kMetrics.
Ratio RatioOf(const Sums& sums, Metric metric);

}  // namespace vcpulse::compare

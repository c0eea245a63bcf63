#include "monitor/compare/sums.h"

#include <numeric>

namespace vcpulse::compare {

void Sums::operator+=(const Sums& other) {
  for (size_t i = 0; i < band_ns.size(); ++i) band_ns[i] += other.band_ns[i];
  no_counters_ns += other.no_counters_ns;
  starved_ns += other.starved_ns;
  starved_known_ns += other.starved_known_ns;
  resident_ns += other.resident_ns;
  residency_known_ns += other.residency_known_ns;
  cycles += other.cycles;
  instructions += other.instructions;
}

bool IsDegraded(const Sums& sums) {
  const double halted_ns = sums.band_ns[static_cast<size_t>(Metric::kHalted)];
  const double judged_ns = std::accumulate(sums.band_ns.begin(), sums.band_ns.end(), 0.0);
  return sums.no_counters_ns > 0 && halted_ns + sums.no_counters_ns >= judged_ns;
}

Ratio RatioOf(const Sums& sums, Metric metric) {
  if (metric == Metric::kStarved) return {sums.starved_ns, sums.starved_known_ns};
  if (metric == Metric::kResidency) return {sums.resident_ns, sums.residency_known_ns};
  if (metric == Metric::kIpc) return {sums.instructions, sums.cycles};
  const double judged_ns = std::accumulate(sums.band_ns.begin(), sums.band_ns.end(), 0.0);
  return {sums.band_ns[static_cast<size_t>(metric)], judged_ns};
}

}  // namespace vcpulse::compare

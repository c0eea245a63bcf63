#include "monitor/report/phase_totals.h"

#include <algorithm>

namespace vcpulse::report {

PhaseTotals PhaseTotals::Knowing(const PhaseTotals& other) {
  PhaseTotals totals;
  totals.phases_ = other.phases_;
  for (Phase& phase : totals.phases_) phase.vcpus.clear();
  totals.marks_ = other.marks_;
  totals.all_marks_known_ = true;
  return totals;
}

void PhaseTotals::Add(const v1::Marker& marker) {
  if (all_marks_known_) return;
  const auto [found, is_new] = by_name_.try_emplace(marker.name(), phases_.size());
  if (is_new) phases_.push_back({.name = marker.name()});
  ++phases_[found->second].spans;
  int64_t from_ns = marker.mono_ns();
  if (!marks_.empty()) from_ns = std::max(from_ns, marks_.back().from_ns);
  came_late_ = came_late_ || (latest_ns_ && *latest_ns_ >= from_ns);
  marks_.push_back({.from_ns = from_ns, .phase = found->second});
}

void PhaseTotals::Add(const metric::Interval& interval, int64_t place_ns) {
  latest_ns_ = std::max(latest_ns_.value_or(place_ns), place_ns);
  const auto after = std::ranges::upper_bound(marks_, place_ns, {}, &Mark::from_ns);
  if (after == marks_.begin()) return;  // before the first phase
  Phase& phase = phases_[std::prev(after)->phase];
  phase.vcpus[{interval.Vm(), interval.Vcpu().index()}].Add(interval);
}

int64_t PhaseTotals::LengthNs(size_t phase, int64_t end_mono_ns) const {
  int64_t length_ns = 0;
  for (size_t i = 0; i < marks_.size(); ++i) {
    if (marks_[i].phase != phase) continue;
    const int64_t to_ns = i + 1 < marks_.size() ? marks_[i + 1].from_ns : end_mono_ns;
    length_ns += std::max<int64_t>(0, to_ns - marks_[i].from_ns);
  }
  return length_ns;
}

}  // namespace vcpulse::report

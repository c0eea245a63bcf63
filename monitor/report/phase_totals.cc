#include "monitor/report/phase_totals.h"

#include <algorithm>

namespace vcpulse::report {

PhaseTotals PhaseTotals::Knowing(const PhaseTotals& other) {
  PhaseTotals totals;
  totals.phases_ = other.phases_;
  for (Phase& phase : totals.phases_) phase.vcpus.clear();
  totals.marks_ = other.marks_;
  totals.spans_omitted_ = other.spans_omitted_;
  totals.all_marks_known_ = true;
  return totals;
}

void PhaseTotals::Add(const v1::Marker& marker) {
  if (all_marks_known_) return;
  int64_t from_ns = marker.mono_ns();
  if (!marks_.empty()) {
    const Mark& before = marks_.back();
    from_ns = std::max(from_ns, before.from_ns);
    if (before.phase < phases_.size()) phases_[before.phase].ended_ns += from_ns - before.from_ns;
  }
  came_late_ = came_late_ || (latest_ns_ && *latest_ns_ >= from_ns);
  auto found = by_name_.find(marker.name());
  if (found == by_name_.end() && phases_.size() < kMostPhases) {
    found = by_name_.emplace(marker.name(), phases_.size()).first;
    phases_.push_back({.name = marker.name()});
  }
  const size_t phase = found == by_name_.end() ? kMostPhases : found->second;
  marks_.push_back({.from_ns = from_ns, .phase = phase});
  if (phase < phases_.size()) {
    ++phases_[phase].spans;
  } else {
    ++spans_omitted_;
  }
}

void PhaseTotals::Add(const metric::Interval& interval, int64_t place_ns) {
  latest_ns_ = std::max(latest_ns_.value_or(place_ns), place_ns);
  const auto after = std::ranges::upper_bound(marks_, place_ns, {}, &Mark::from_ns);
  if (after == marks_.begin()) return;  // before the first phase
  const size_t phase = std::prev(after)->phase;
  if (phase >= phases_.size()) return;
  phases_[phase].vcpus[{interval.Vm(), interval.Vcpu().index()}].Add(interval);
}

int64_t PhaseTotals::LengthNs(size_t phase, int64_t end_mono_ns) const {
  int64_t length_ns = phases_.at(phase).ended_ns;
  if (!marks_.empty() && marks_.back().phase == phase) {
    length_ns += std::max<int64_t>(0, end_mono_ns - marks_.back().from_ns);
  }
  return length_ns;
}

}  // namespace vcpulse::report

#include "monitor/check/coverage.h"

#include <algorithm>

namespace vcpulse::check {

std::span<const Part> Coverage::Take(const TimeRange& covered, const Observation& observation) {
  parts_.clear();
  if (covered.Length() <= 0) return parts_;
  PassTo(covered.from_ns, nullptr);
  PassTo(covered.to_ns, &observation);
  return parts_;
}

std::span<const Part> Coverage::Finish() {
  parts_.clear();
  if (!pieces_.empty()) PassTo(pieces_.back().to_ns, nullptr);
  return parts_;
}

void Coverage::PassTo(int64_t until_ns, const Observation* observation) {
  while (next_ < pieces_.size()) {
    const TimeRange& piece = pieces_[next_];
    const int64_t from_ns = std::max(piece.from_ns, passed_ns_.value_or(piece.from_ns));
    const int64_t to_ns = std::min(piece.to_ns, until_ns);
    const bool touches = next_ > 0 && pieces_[next_ - 1].to_ns == piece.from_ns;
    if (from_ns < to_ns) {
      parts_.push_back({.when = {.from_ns = from_ns, .to_ns = to_ns},
                        .observation = observation,
                        .begins = from_ns == piece.from_ns && !touches});
    }
    if (until_ns < piece.to_ns) break;
    ++next_;
  }
  passed_ns_ = std::max(passed_ns_.value_or(until_ns), until_ns);
}

}  // namespace vcpulse::check

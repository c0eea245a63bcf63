#include "monitor/check/expression.h"

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::check {

bool Quantity::NeedsCounters() const {
  return kind != Kind::kGaps && metric::InfoOf(metric).needs_counters;
}

std::optional<Metric> FindAsked(std::string_view key) {
  const std::optional<Metric> metric = metric::FindMetric(key);
  return metric && metric::InfoOf(*metric).asked ? metric : std::nullopt;
}

std::string ToString(const Quantity& quantity) {
  const auto key = ToAbsl(metric::InfoOf(quantity.metric).key);
  switch (quantity.kind) {
    case Quantity::Kind::kMean:
      return std::string(key);
    case Quantity::Kind::kLongest:
      return absl::StrCat("longest(", key, ")");
    case Quantity::Kind::kPercentile:
      return absl::StrCat(key, ".p", quantity.percentile);
    case Quantity::Kind::kGaps:
      return "gaps";
  }
  return "-";
}

std::string_view ToString(Comparison comparison) {
  switch (comparison) {
    case Comparison::kBelow:
      return "<";
    case Comparison::kAtMost:
      return "<=";
    case Comparison::kAtLeast:
      return ">=";
    case Comparison::kAbove:
      return ">";
  }
  return "-";
}

}  // namespace vcpulse::check

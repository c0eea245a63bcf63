#include "monitor/check/expression.h"

#include "absl/strings/str_cat.h"
#include "kvm/text.h"

namespace vcpulse::check {

std::string_view ToString(Metric metric) {
  switch (metric) {
    case Metric::kHalted:
      return "halted";
    case Metric::kSpinning:
      return "spinning";
    case Metric::kProductive:
      return "productive";
    case Metric::kUnknown:
      return "unknown";
    case Metric::kStarved:
      return "starved";
    case Metric::kResidency:
      return "residency";
    case Metric::kIpc:
      return "ipc";
    case Metric::kGaps:
      return "gaps";
  }
  return "-";
}

std::string ToString(const Quantity& quantity) {
  const auto metric = ToAbsl(ToString(quantity.metric));
  if (quantity.metric == Metric::kIpc) return absl::StrCat(metric, ".p", quantity.percentile);
  return quantity.longest ? absl::StrCat("longest(", metric, ")") : std::string(metric);
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

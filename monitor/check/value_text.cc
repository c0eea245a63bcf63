#include "monitor/check/value_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "kvm/base/clock.h"

namespace vcpulse::check {
namespace {

using Kind = Quantity::Kind;

// With more digits than the quantity has by itself where `digits` is more than 1.
std::string WithDigits(double value, int digits, const Quantity& quantity) {
  if (quantity.IsNumber()) {
    return absl::StrFormat("%.*f", digits - 1 + metric::InfoOf(quantity.metric).decimals, value);
  }
  if (quantity.kind != Kind::kLongest) return absl::StrFormat("%.*f %%", digits, value * 100);
  const bool in_seconds = std::abs(value) >= 1e9;
  return absl::StrFormat("%.*f %s", digits, value / (in_seconds ? 1e9 : 1e6),
                         in_seconds ? "s" : "ms");
}

std::string SpanText(const WorstSpan& span) {
  constexpr int64_t kSecond_ns = 1'000'000'000;
  const int digits = span.to_ns - span.from_ns >= kSecond_ns ? 1 : 3;
  return absl::StrFormat("from %.*f s to %.*f s", digits, ToSeconds(span.from_ns), digits,
                         ToSeconds(span.to_ns));
}

}  // namespace

std::string ValueText(const Quantity& quantity, double value, double limit) {
  constexpr int kMostDigits = 6;
  std::string text = WithDigits(value, 1, quantity);
  if (value == limit) return text;
  // A reason that says "5.0 %, wanted <= 5 %" would puzzle.
  for (int digits = 1; digits <= kMostDigits; ++digits) {
    std::string longer = WithDigits(value, digits, quantity);
    if (longer != WithDigits(limit, digits, quantity)) return longer;
  }
  return text;  // what is between them is of the arithmetic
}

std::string BoundsText(const Quantity& quantity, const Bounds& bounds, double limit) {
  const std::string low = ValueText(quantity, bounds.low, limit);
  if (std::isinf(bounds.high)) return absl::StrCat(low, " or more");
  const std::string high = ValueText(quantity, bounds.high, limit);
  return low == high ? low : absl::StrCat(low, " to ", high);
}

std::string LimitText(const Quantity& quantity, double limit) {
  if (quantity.kind == Kind::kLongest) return absl::FormatDuration(absl::Nanoseconds(limit));
  if (quantity.IsNumber()) return absl::StrFormat("%.10g", limit);
  return absl::StrFormat("%.10g %%", limit * 100);
}

std::string WorstText(const Quantity& quantity, const WorstSpan& worst, double limit) {
  return absl::StrCat(ValueText(quantity, worst.observed, limit), " ", SpanText(worst));
}

}  // namespace vcpulse::check

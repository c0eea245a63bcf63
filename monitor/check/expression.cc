#include "monitor/check/expression.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kvm/base/text.h"

namespace vcpulse::check {
namespace {

// `line` up to a '#' that begins it or follows a space, outside of quotes.
std::string_view WithoutComment(std::string_view line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    const bool begins_word = i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t';
    if (line[i] == '#' && begins_word && !quoted) return line.substr(0, i);
  }
  return line;
}

}  // namespace

bool Quantity::NeedsCounters() const {
  return kind != Kind::kGaps && kind != Kind::kHot && metric::InfoOf(metric).needs_counters;
}

bool Quantity::IsOfIpcBands() const {
  const bool of_band =
      metric == Metric::kSpinning || metric == Metric::kProductive || metric == Metric::kUnknown;
  return of_band && (kind == Kind::kMean || kind == Kind::kLongest);
}

std::optional<Metric> FindAsked(std::string_view key) {
  const std::optional<Metric> metric = metric::FindMetric(key);
  return metric && metric::InfoOf(*metric).asked ? metric : std::nullopt;
}

std::string ToString(const Quantity& quantity) {
  const auto key = ToAbsl(metric::InfoOf(quantity.metric).key);
  const absl::string_view by = quantity.by_ipc_bands ? " by ipc-bands" : "";
  switch (quantity.kind) {
    case Quantity::Kind::kMean:
      return absl::StrCat(key, by);
    case Quantity::Kind::kLongest:
      return absl::StrCat("longest(", key, ")", by);
    case Quantity::Kind::kPercentile:
      return absl::StrCat(key, ".p", quantity.percentile);
    case Quantity::Kind::kGaps:
      return "gaps";
    case Quantity::Kind::kHot:
      return absl::StrCat("hot(\"", quantity.functions, "\")");
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
    case Comparison::kEqual:
      return "==";
  }
  return "-";
}

std::string_view ToString(Quantifier quantifier) {
  switch (quantifier) {
    case Quantifier::kEach:
      return "each";
    case Quantifier::kAny:
      return "any";
    case Quantifier::kSum:
      return "sum";
  }
  return "-";
}

absl::StatusOr<std::vector<Expectation>> ExpectationsFromText(std::string_view text) {
  std::vector<Expectation> expectations;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = WithoutComment(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r\v\f") == std::string_view::npos) continue;
    auto expectation = ParseExpectation(line);
    if (!expectation.ok()) {
      // "column 7: ..." becomes "3:7: ...", which editors know behind the name of a file.
      return absl::InvalidArgumentError(
          absl::StrCat(number, ":", absl::StripPrefix(expectation.status().message(), "column ")));
    }
    expectations.push_back(*std::move(expectation));
  }
  if (expectations.empty()) return absl::InvalidArgumentError("no expectation in it");
  return expectations;
}

}  // namespace vcpulse::check

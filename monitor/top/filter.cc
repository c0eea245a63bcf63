#include "monitor/top/filter.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/lexer.h"
#include "kvm/base/text.h"
#include "monitor/check/selector.h"
#include "monitor/reading/labels.h"
#include "monitor/top/columns.h"

namespace vcpulse::top {
namespace {

bool Holds(double value, check::Comparison comparison, double limit) {
  switch (comparison) {
    case check::Comparison::kBelow:
      return value < limit;
    case check::Comparison::kAtMost:
      return value <= limit;
    case check::Comparison::kAtLeast:
      return value >= limit;
    case check::Comparison::kAbove:
      return value > limit;
    case check::Comparison::kEqual:
      return value == limit;
  }
  return false;
}

absl::Status CheckOfMoment(const check::Expectation& expectation) {
  using Kind = check::Quantity::Kind;
  if (expectation.quantity.kind != Kind::kMean && expectation.quantity.kind != Kind::kPercentile) {
    return absl::InvalidArgumentError(
        absl::StrCat(check::ToString(expectation.quantity),
                     " is of a stretch of time, which a filter does not have: ask for a metric"));
  }
  if (expectation.phase) return absl::InvalidArgumentError("a filter has no phase=");
  if (expectation.quantifier != check::Quantifier::kEach) {
    return absl::InvalidArgumentError("a filter is asked of each vCPU: leave out any and sum");
  }
  if (expectation.UsesBaseline()) return absl::InvalidArgumentError("a filter has no baseline");
  return absl::OkStatus();
}

// As in `check`, and "ipc < 1" too: a moment has one value, whatever the percentile.
absl::StatusOr<check::Expectation> ParseComparison(const std::string& text) {
  auto as_given = check::ParseExpectation(text);
  if (as_given.ok()) return as_given;
  const size_t behind_keys = text.rfind(':') == std::string::npos ? 0 : text.rfind(':');
  const size_t comparison = text.find_first_of("<>=", behind_keys);
  if (comparison == std::string::npos) return as_given;
  std::string quantity = text.substr(0, comparison);
  // As its column is headed: "DELAY > 5%".
  const std::string head(ToStd(absl::StripAsciiWhitespace(ToAbsl(quantity))));
  for (const Column& column : Columns()) {
    if (head == column.name || !absl::EqualsIgnoreCase(head, ToAbsl(column.head))) continue;
    return ParseComparison(absl::StrCat(std::string(column.name), text.substr(comparison)));
  }
  absl::StripTrailingAsciiWhitespace(&quantity);
  auto with_median =
      check::ParseExpectation(absl::StrCat(quantity, ".p50 ", text.substr(comparison)));
  return with_median.ok() ? with_median : as_given;
}

absl::StatusOr<check::Selector> ParseSelectorAlone(const std::string& text) {
  const std::string with_end = text + ":";
  Lexer lexer(with_end);
  check::Selector selector;
  std::optional<std::string> phase;
  check::SelectorKeys keys;
  if (absl::Status status = check::ParseSelector(lexer, selector, phase, keys); !status.ok()) {
    return status;
  }
  if (phase) return absl::InvalidArgumentError("a filter has no phase=");
  return selector;
}

bool ContainsIgnoringCase(std::string_view text, std::string_view part) {
  return absl::StrContains(absl::AsciiStrToLower(ToAbsl(text)),
                           absl::AsciiStrToLower(ToAbsl(part)));
}

}  // namespace

std::optional<double> KnownValue(metric::Metric metric, const metric::Totals& totals,
                                 bool is_degraded) {
  const bool is_of_counters =
      metric == metric::Metric::kSpinning || metric == metric::Metric::kProductive;
  if (is_of_counters && (is_degraded || totals.HadNoCounters())) return std::nullopt;
  return totals.Value(metric);
}

absl::StatusOr<Filter> Filter::Parse(std::string_view given) {
  Filter filter;
  filter.text_ = std::string(ToStd(absl::StripAsciiWhitespace(ToAbsl(given))));
  const std::string& text = filter.text_;
  if (text.empty()) return filter;
  constexpr size_t kLeastLetters = 2;
  if (text.size() >= kLeastLetters) {
    const std::string word = absl::AsciiStrToLower(text);
    filter.starved_ = std::string_view("starved").starts_with(word);
    for (size_t i = 1; i < core::kBands; ++i) {
      const auto band = static_cast<core::Band>(i);
      if (reading::BandName(band)->starts_with(word)) filter.band_ = band;
    }
    if (filter.starved_ || filter.band_) return filter;
  }
  const bool has_keys = text.starts_with("vm=") || text.starts_with("vcpu=");
  std::string_view behind_keys = text;
  if (has_keys) {
    const size_t colon = text.rfind(':');
    behind_keys = colon == std::string::npos ? std::string_view() : behind_keys.substr(colon);
  }
  if (behind_keys.find_first_of("<>=") != std::string_view::npos) {
    auto expectation = ParseComparison(text);
    if (!expectation.ok()) return expectation.status();
    if (absl::Status status = CheckOfMoment(*expectation); !status.ok()) return status;
    filter.selector_ = expectation->selector;
    filter.expectation_ = *std::move(expectation);
  } else if (has_keys) {
    auto selector = ParseSelectorAlone(text);
    if (!selector.ok()) return selector.status();
    filter.selector_ = *std::move(selector);
  }
  return filter;
}

bool Filter::Selects(const FilterSubject& subject) const {
  const auto& vm = selector_->vm;
  if (vm && *vm != subject.vm && *vm != subject.uuid && *vm != absl::StrCat(subject.pid) &&
      *vm != absl::StrCat(subject.vm_number)) {
    return false;
  }
  return selector_->vcpus.empty() ||
         std::ranges::any_of(selector_->vcpus, [&](const check::IndexRange& range) {
           return range.first <= subject.vcpu && subject.vcpu <= range.last;
         });
}

bool Filter::Matches(const FilterSubject& subject) const {
  if (text_.empty()) return true;
  if (band_) return subject.verdict.band == *band_;
  if (starved_) return subject.verdict.starved;
  if (selector_ && !Selects(subject)) return false;
  if (expectation_) {
    const auto value =
        KnownValue(expectation_->quantity.metric, subject.totals, subject.is_degraded);
    return value && Holds(*value, expectation_->comparison, expectation_->limit);
  }
  if (selector_) return true;
  return ContainsIgnoringCase(subject.vm, text_) || ContainsIgnoringCase(subject.host, text_) ||
         ContainsIgnoringCase(absl::StrCat("vcpu ", subject.vcpu), text_);
}

}  // namespace vcpulse::top

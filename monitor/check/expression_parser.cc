// One expectation, from text.
#include <algorithm>
#include <charconv>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/check/expression.h"
#include "monitor/check/selector.h"

namespace vcpulse::check {
namespace {

using Kind = Quantity::Kind;

constexpr char kComparisons[] = "<, <=, >=, >";

bool IsOfLongest(Metric metric) { return metric <= Metric::kStarved; }

// What is allowed, for messages: the shares, gaps, the numbers, longest(...).
std::string Quantities() {
  std::string shares;
  std::string numbers;
  for (const metric::Info& info : metric::Table()) {
    if (!info.asked) continue;
    const auto key = ToAbsl(info.key);
    if (info.IsShare()) {
      absl::StrAppend(&shares, key, ", ");
    } else {
      absl::StrAppend(&numbers, key, ".pNN, ");
    }
  }
  return absl::StrCat(shares, "gaps, ", numbers, "longest(...)");
}

std::string MetricsOfLongest() {
  std::string keys;
  for (const metric::Info& info : metric::Table()) {
    if (!IsOfLongest(info.metric)) continue;
    absl::StrAppend(&keys, keys.empty() ? "" : ", ", ToAbsl(info.key));
  }
  return keys;
}

// Digits with at most one point among them, times 10^exponent, rounded once: so 0.1% is the very
// number that 1 of 1000 gives.
std::optional<double> Decimal(std::string_view text, int exponent) {
  const auto is_plain = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  if (text.empty() || text.front() == '.' || !std::ranges::all_of(text, is_plain)) {
    return std::nullopt;
  }
  const std::string written = absl::StrCat(ToAbsl(text), "e", exponent);
  const char* const end = written.data() + written.size();
  double value = 0;
  const auto read = std::from_chars(written.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

absl::StatusOr<Quantity> TakePercentile(Lexer& lexer, std::string_view word, size_t at,
                                        Metric metric) {
  const std::string before = absl::StrCat(ToAbsl(metric::InfoOf(metric).key), ".p");
  const auto number =
      word.starts_with(before) ? ParseNumber<uint32_t>(word.substr(before.size())) : std::nullopt;
  if (!number || *number < 1 || *number > 99) {
    return lexer.Wrong(
        at, absl::StrCat(Quoted(word), " needs a percentile from ", before, "1 to ", before, "99"));
  }
  return Quantity{
      .kind = Kind::kPercentile, .metric = metric, .percentile = static_cast<double>(*number)};
}

absl::StatusOr<Quantity> TakeLongest(Lexer& lexer) {
  lexer.SkipSpaces();
  if (!lexer.Take('(')) {
    return lexer.Wrong(lexer.at(), "longest needs a band, as in longest(spinning)");
  }
  lexer.SkipSpaces();
  const size_t at = lexer.at();
  const std::string_view word = lexer.TakeWord();
  const std::optional<Metric> metric = FindAsked(word);
  if (!metric || !IsOfLongest(*metric)) return lexer.NoneOf(at, word, MetricsOfLongest());
  lexer.SkipSpaces();
  if (!lexer.Take(')')) return lexer.Wrong(lexer.at(), "')' is missing here");
  return Quantity{.kind = Kind::kLongest, .metric = *metric};
}

absl::StatusOr<Quantity> TakeBareQuantity(Lexer& lexer) {
  lexer.SkipSpaces();
  const size_t at = lexer.at();
  const std::string_view word = lexer.TakeWord();
  if (word == "longest") return TakeLongest(lexer);
  if (word == "gaps") return kGaps;
  const std::optional<Metric> metric = FindAsked(word.substr(0, word.find('.')));
  if (metric && !metric::InfoOf(*metric).IsShare()) {
    return TakePercentile(lexer, word, at, *metric);
  }
  if (!metric || word.find('.') != std::string_view::npos) {
    return lexer.NoneOf(at, word, Quantities());
  }
  return Quantity{.metric = *metric};
}

absl::StatusOr<Quantity> TakeQuantity(Lexer& lexer) {
  auto quantity = TakeBareQuantity(lexer);
  if (!quantity.ok()) return quantity;
  lexer.SkipSpaces();
  const size_t at = lexer.at();
  if (Lexer(lexer).TakeWord() != "by") return quantity;
  lexer.TakeWord();
  lexer.SkipSpaces();
  const size_t by_at = lexer.at();
  const std::string_view classifier =
      lexer.TakeWhile([](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
  if (classifier != "ipc-bands") return lexer.NoneOf(by_at, classifier, "ipc-bands");
  if (!quantity->IsOfIpcBands()) {
    return lexer.Wrong(at, absl::StrCat(ToString(*quantity),
                                        " does not depend on ipc-bands: leave out 'by ipc-bands'"));
  }
  quantity->by_ipc_bands = true;
  return quantity;
}

absl::StatusOr<Comparison> TakeComparison(Lexer& lexer) {
  lexer.SkipSpaces();
  const size_t at = lexer.at();
  const std::string_view sign = lexer.TakeComparison();
  for (const Comparison c :
       {Comparison::kBelow, Comparison::kAtMost, Comparison::kAtLeast, Comparison::kAbove}) {
    if (ToString(c) == sign) return c;
  }
  return lexer.NoneOf(at, sign, kComparisons);
}

absl::StatusOr<double> TakeShare(Lexer& lexer, const Quantity& quantity) {
  const size_t at = lexer.at();
  const std::string_view word = lexer.TakeUnspaced();
  std::string_view number = word;
  bool has_sign = number.ends_with('%');
  if (has_sign) number.remove_suffix(1);
  const std::optional<double> share = Decimal(number, -2);
  if (!share) return lexer.NoneOf(at, word, "the percentages, as 80%");
  if (!has_sign) {
    lexer.SkipSpaces();
    has_sign = lexer.Take('%');
  }
  if (!has_sign) {
    return lexer.Wrong(at, absl::StrCat(Quoted(word), " needs a %: ", ToString(quantity),
                                        " is a share of the time, as 80%"));
  }
  if (*share > 1) return lexer.Wrong(at, absl::StrCat(Quoted(word), " is beyond 0% to 100%"));
  return *share;
}

absl::StatusOr<double> TakeLimit(Lexer& lexer, const Quantity& quantity) {
  lexer.SkipSpaces();
  const size_t at = lexer.at();
  if (quantity.kind == Kind::kLongest) {
    const std::string_view word = lexer.TakeUnspaced();
    absl::Duration duration;
    if (!absl::ParseDuration(ToAbsl(word), &duration) || duration < absl::ZeroDuration() ||
        duration == absl::InfiniteDuration()) {
      return lexer.NoneOf(at, word, "the durations, as 200ms or 1.5s (units ns us ms s m h)");
    }
    return absl::ToDoubleNanoseconds(duration);
  }
  if (!quantity.IsNumber()) return TakeShare(lexer, quantity);
  const std::string_view word = lexer.TakeUnspaced();
  if (const std::optional<double> number = Decimal(word, 0)) return *number;
  return lexer.NoneOf(at, word,
                      absl::StrCat("the numbers of ",
                                   ToAbsl(metric::InfoOf(quantity.metric).unit_text), ", as 0.9"));
}

}  // namespace

absl::StatusOr<Quantity> ParseQuantity(std::string_view text) {
  Lexer lexer(text);
  auto quantity = TakeQuantity(lexer);
  if (!quantity.ok()) return quantity.status();
  lexer.SkipSpaces();
  if (!lexer.AtEnd()) {
    return lexer.Wrong(lexer.at(), absl::StrCat(Quoted(lexer.Rest()), " is more than a quantity"));
  }
  return quantity;
}

absl::StatusOr<Expectation> ParseExpectation(std::string_view text) {
  Lexer lexer(text);
  lexer.SkipSpaces();
  Expectation expectation;
  expectation.text = std::string(lexer.Rest());
  if (lexer.AtEnd()) {
    return lexer.Wrong(lexer.at(), "there is no expectation, as in 'vcpu=*: spinning <= 5%'");
  }
  SelectorKeys keys;
  absl::Status status = ParseSelector(lexer, expectation.selector, nullptr, keys);
  if (!status.ok()) return status;
  const auto quantity = TakeQuantity(lexer);
  if (!quantity.ok()) return quantity.status();
  expectation.quantity = *quantity;
  if (quantity->kind == Kind::kGaps && keys.vcpu) {
    return lexer.Wrong(*keys.vcpu, "gaps are those of a whole VM: they take no vcpu=");
  }
  const auto comparison = TakeComparison(lexer);
  if (!comparison.ok()) return comparison.status();
  expectation.comparison = *comparison;
  const auto limit = TakeLimit(lexer, expectation.quantity);
  if (!limit.ok()) return limit.status();
  expectation.limit = *limit;
  lexer.SkipSpaces();
  if (!lexer.AtEnd()) {
    return lexer.Wrong(lexer.at(),
                       absl::StrCat(Quoted(lexer.Rest()), " is more than one expectation"));
  }
  return expectation;
}

}  // namespace vcpulse::check

// One expectation, from text.
#include <algorithm>
#include <charconv>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/check/expression.h"
#include "monitor/check/selector.h"

namespace vcpulse::check {
namespace {

using Kind = Quantity::Kind;

constexpr char kComparisons[] = "<, <=, ==, >=, >";

bool IsOfLongest(Metric metric) { return metric <= Metric::kStarved; }

// Keys of those that `belong`, each with `ending`, for messages.
template <typename Belongs>
std::string Keys(const Belongs& belongs, absl::string_view ending = "") {
  std::vector<std::string> keys;
  for (const metric::Info& info : metric::Table()) {
    if (info.asked && belongs(info)) keys.push_back(absl::StrCat(ToAbsl(info.key), ending));
  }
  return absl::StrJoin(keys, ", ");
}

std::string Shares() {
  return Keys([](const metric::Info& info) { return info.IsShare(); });
}

std::string Quantities() {
  const std::string numbers =
      Keys([](const metric::Info& info) { return !info.IsShare(); }, ".pNN");
  return absl::StrCat(Shares(), ", gaps, ", numbers, ", longest(...), hot(\"...\")");
}

std::string MetricsOfLongest() {
  return Keys([](const metric::Info& info) { return IsOfLongest(info.metric); });
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
  const std::string_view word = lexer.TakeHyphenated();
  const std::optional<Metric> metric = FindAsked(word);
  if (!metric || !IsOfLongest(*metric)) return lexer.NoneOf(at, word, MetricsOfLongest());
  lexer.SkipSpaces();
  if (!lexer.Take(')')) return lexer.Wrong(lexer.at(), "')' is missing here");
  return Quantity{.kind = Kind::kLongest, .metric = *metric};
}

absl::StatusOr<Quantity> TakeHot(Lexer& lexer) {
  constexpr char kForm[] = "hot needs the name of a function, as in hot(\"*spin*\")";
  lexer.SkipSpaces();
  if (!lexer.Take('(')) return lexer.Wrong(lexer.at(), kForm);
  lexer.SkipSpaces();
  const size_t at = lexer.at();
  if (!lexer.Take('"')) return lexer.Wrong(at, kForm);
  const std::string_view name = lexer.TakeWhile([](char c) { return c != '"'; });
  if (!lexer.Take('"')) return lexer.Wrong(at, "this '\"' is never closed");
  if (name.empty()) return lexer.Wrong(at, kForm);
  lexer.SkipSpaces();
  if (!lexer.Take(')')) return lexer.Wrong(lexer.at(), "')' is missing here");
  return Quantity{.kind = Kind::kHot, .functions = std::string(name)};
}

absl::StatusOr<Quantity> TakeBareQuantity(Lexer& lexer) {
  lexer.SkipSpaces();
  const size_t at = lexer.at();
  const std::string_view word = lexer.TakeHyphenated();
  if (word == "longest") return TakeLongest(lexer);
  if (word == "hot") return TakeHot(lexer);
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
  const std::string_view classifier = lexer.TakeHyphenated();
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
  for (const Comparison c : {Comparison::kBelow, Comparison::kAtMost, Comparison::kEqual,
                             Comparison::kAtLeast, Comparison::kAbove}) {
    if (ToString(c) == sign) return c;
  }
  return lexer.NoneOf(at, sign, kComparisons);
}

absl::StatusOr<double> TakeShare(Lexer& lexer, const Quantity& quantity, Quantifier quantifier) {
  const size_t at = lexer.at();
  const std::string_view word = lexer.TakeUnspaced();
  std::string_view number = word;
  bool has_sign = number.ends_with('%');
  if (has_sign) number.remove_suffix(1);
  const std::optional<double> share = Decimal(number, -2);
  if (!share) return lexer.NotA(at, word, "a percentage (for example 80%)");
  if (!has_sign) {
    lexer.SkipSpaces();
    has_sign = lexer.Take('%');
  }
  if (!has_sign) {
    return lexer.Wrong(
        at, absl::StrCat(Quoted(word), " needs a %: ", ToString(quantity), " is a share",
                         quantity.kind == Kind::kHot ? "" : " of the time", " (for example 80%)"));
  }
  if (*share > 1 && quantifier != Quantifier::kSum) {
    return lexer.Wrong(at, absl::StrCat(Quoted(word), " is beyond 0% to 100%"));
  }
  return *share;
}

// What is added to the baseline's share or taken from it: a percentage could also be one of it.
absl::StatusOr<double> TakePoints(Lexer& lexer) {
  const size_t at = lexer.at();
  const std::string_view word = lexer.TakeUnspaced();
  const bool has_unit = word.ends_with("pt");
  const std::optional<double> points =
      Decimal(word.substr(0, word.size() - (has_unit ? 2 : 0)), -2);
  if (has_unit && points) return *points;
  return lexer.NotA(at, word,
                    "a number of percentage points (for example 5pt; relative: baseline * 0.95)");
}

absl::StatusOr<double> TakeDuration(Lexer& lexer) {
  const size_t at = lexer.at();
  const std::string_view word = lexer.TakeUnspaced();
  absl::Duration duration;
  if (!absl::ParseDuration(ToAbsl(word), &duration) || duration < absl::ZeroDuration() ||
      duration == absl::InfiniteDuration()) {
    return lexer.NotA(at, word, "a duration (for example 200ms or 1.5s; units ns us ms s m h)");
  }
  return absl::ToDoubleNanoseconds(duration);
}

absl::StatusOr<double> TakeNumber(Lexer& lexer, Metric metric) {
  const size_t at = lexer.at();
  const std::string_view word = lexer.TakeUnspaced();
  if (const std::optional<double> number = Decimal(word, 0)) return *number;
  return lexer.NotA(
      at, word,
      absl::StrCat("a number of ", ToAbsl(metric::InfoOf(metric).unit_text), " (for example 0.9)"));
}

absl::StatusOr<double> TakeFactor(Lexer& lexer) {
  const size_t at = lexer.at();
  const std::string_view word = lexer.TakeUnspaced();
  const std::optional<double> factor = Decimal(word, 0);
  if (factor && *factor > 0) return *factor;
  return lexer.NotA(at, word, "a factor above 0 (for example 0.95)");
}

// What stands behind "baseline".
absl::Status TakeChange(Lexer& lexer, Expectation& expectation) {
  expectation.baseline_factor = 1;
  lexer.SkipSpaces();
  if (lexer.AtEnd()) return absl::OkStatus();
  const size_t at = lexer.at();
  const bool relative = lexer.Take('*');
  const bool less = !relative && lexer.Take('-');
  if (!relative && !less && !lexer.Take('+')) return lexer.NoneOf(at, "", "+, -, *");
  lexer.SkipSpaces();
  const Quantity& quantity = expectation.quantity;
  const auto value = relative                             ? TakeFactor(lexer)
                     : quantity.kind == Kind::kLongest    ? TakeDuration(lexer)
                     : quantity.kind == Kind::kPercentile ? TakeNumber(lexer, quantity.metric)
                                                          : TakePoints(lexer);
  if (!value.ok()) return value.status();
  (relative ? expectation.baseline_factor : expectation.limit) = less ? -*value : *value;
  return absl::OkStatus();
}

absl::Status TakeLimit(Lexer& lexer, Expectation& expectation) {
  lexer.SkipSpaces();
  Lexer ahead = lexer;
  if (ahead.TakeWord() == "baseline") {
    lexer = ahead;
    return TakeChange(lexer, expectation);
  }
  const Quantity& quantity = expectation.quantity;
  const auto value = quantity.kind == Kind::kLongest ? TakeDuration(lexer)
                     : quantity.IsNumber()           ? TakeNumber(lexer, quantity.metric)
                                           : TakeShare(lexer, quantity, expectation.quantifier);
  if (!value.ok()) return value.status();
  expectation.limit = *value;
  return absl::OkStatus();
}

// Whether a word and then a selector stand here: the word is meant as a quantifier.
bool AtQuantifier(Lexer lexer) {
  lexer.TakeWord();
  lexer.SkipSpaces();
  const std::string_view key = lexer.TakeWord();
  lexer.SkipSpaces();
  return (key == "vm" || key == "vcpu" || key == "phase") && lexer.Is('=');
}

// "each", "any" or "sum"; nothing where none of them stands here.
absl::StatusOr<std::optional<Quantifier>> TakeQuantifier(Lexer& lexer) {
  const size_t at = lexer.at();
  Lexer ahead = lexer;
  const std::string_view word = ahead.TakeWord();
  for (const Quantifier one : {Quantifier::kEach, Quantifier::kAny, Quantifier::kSum}) {
    if (word != ToString(one)) continue;
    lexer = ahead;
    lexer.SkipSpaces();
    return one;
  }
  if (!word.empty() && AtQuantifier(lexer)) return lexer.NoneOf(at, word, "each, any, sum");
  return std::nullopt;
}

// [each|any|sum] [vm=...] [vcpu=...] [phase=...] :
absl::Status TakeWhom(Lexer& lexer, Expectation& expectation, SelectorKeys& keys) {
  const auto quantifier = TakeQuantifier(lexer);
  if (!quantifier.ok()) return quantifier.status();
  expectation.quantifier = quantifier->value_or(Quantifier::kEach);
  const size_t at = lexer.at();
  absl::Status status;
  if (!*quantifier || !lexer.Is(':')) {
    status = ParseSelector(lexer, expectation.selector, expectation.phase, keys);
  }
  if (!status.ok()) return status;
  if (*quantifier && !keys.vm && !keys.vcpu) {
    if (const auto second = TakeQuantifier(lexer); second.ok() && *second) {
      return lexer.Wrong(at, absl::StrCat("only one of each, any, sum can be given; ",
                                          ToAbsl(ToString(**quantifier)), " is there already"));
    }
    const auto word = ToAbsl(ToString(**quantifier));
    return lexer.Wrong(at, absl::StrCat(word, " needs vm= or vcpu=, as in '", word,
                                        " vcpu=*: spinning > 50%' (of gaps vm=, as in '", word,
                                        " vm=*: gaps <= 1%')"));
  }
  if (keys.phase && !expectation.phase) {
    return lexer.Wrong(*keys.phase, "phase= takes the name of one phase, not *");
  }
  return absl::OkStatus();
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
  if (absl::Status status = TakeWhom(lexer, expectation, keys); !status.ok()) return status;
  lexer.SkipSpaces();
  const size_t quantity_at = lexer.at();
  const auto quantity = TakeQuantity(lexer);
  if (!quantity.ok()) return quantity.status();
  expectation.quantity = *quantity;
  if (expectation.quantifier == Quantifier::kSum && !quantity->AddsUp()) {
    return lexer.Wrong(quantity_at, absl::StrCat(ToString(*quantity),
                                                 " does not add up; sum takes one of ", Shares()));
  }
  if (quantity->kind == Kind::kGaps && keys.vcpu) {
    return lexer.Wrong(*keys.vcpu, "gaps are those of a whole VM: they take no vcpu=");
  }
  const auto comparison = TakeComparison(lexer);
  if (!comparison.ok()) return comparison.status();
  expectation.comparison = *comparison;
  if (absl::Status status = TakeLimit(lexer, expectation); !status.ok()) return status;
  lexer.SkipSpaces();
  if (!lexer.AtEnd()) {
    return lexer.Wrong(lexer.at(),
                       absl::StrCat(Quoted(lexer.Rest()), " is more than one expectation"));
  }
  return expectation;
}

}  // namespace vcpulse::check

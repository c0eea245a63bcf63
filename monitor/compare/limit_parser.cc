#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/check/selector.h"
#include "monitor/compare/comparison.h"

namespace vcpulse::compare {
namespace {

constexpr double kMostPercent = 1e6;  // more is a slip of the finger

// With a sign.
std::optional<double> Signed(std::string_view text) {
  if (text.size() < 2 || (text.front() != '+' && text.front() != '-')) return std::nullopt;
  const bool plain = std::ranges::all_of(text.substr(1),
                                         [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  const char* const begin = text.data() + (text.front() == '+' ? 1 : 0);
  const char* const end = text.data() + text.size();
  double value = 0;
  const auto read = std::from_chars(begin, end, value);
  if (!plain || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

std::string Quantities() {
  std::string keys;
  for (const metric::Info& info : metric::Table()) {
    if (info.asked) absl::StrAppend(&keys, keys.empty() ? "" : ", ", ToAbsl(info.key));
  }
  return keys;
}

absl::Status TakeQuantity(Lexer& lexer, Limit& limit) {
  lexer.SkipSpaces();
  const size_t at = lexer.at();
  const std::string_view word = lexer.TakeHyphenated();
  const std::optional<metric::Metric> metric = check::FindAsked(word);
  if (!metric) return lexer.NoneOf(at, word, Quantities());
  limit.metric = *metric;
  lexer.SkipSpaces();
  const size_t sign_at = lexer.at();
  const std::string_view sign = lexer.TakeComparison();
  if (sign != "<" && sign != "<=" && sign != ">" && sign != ">=") {
    return lexer.Wrong(sign_at, "one of <, <=, >=, > belongs here");
  }
  limit.above = sign.front() == '>';
  limit.or_equal = sign.size() == 2;
  return absl::OkStatus();
}

absl::Status TakeChange(Lexer& lexer, Limit& limit) {
  lexer.SkipSpaces();
  const std::string_view change = lexer.Rest();
  const metric::Info& info = metric::InfoOf(limit.metric);
  std::string_view number = change;
  const bool points = number.ends_with("pt");
  limit.relative = number.ends_with('%');
  number.remove_suffix(points ? 2 : limit.relative ? 1 : 0);
  const std::optional<double> value = Signed(number);
  if (!value || std::abs(*value) > kMostPercent || points == (!info.IsShare() || limit.relative)) {
    return lexer.Wrong(
        lexer.at(),
        absl::StrCat(change.empty() ? std::string("nothing") : Quoted(change),
                     info.IsShare()
                         ? " is not a change of a share: +5pt (percentage points) or +10% "
                           "(relative to A)"
                         : absl::StrCat(" is not a change of ", ToAbsl(info.label),
                                        ": +10% (relative to A) or -0.2"),
                     ", with its sign"));
  }
  if (limit.relative && *value < -100) {
    return lexer.Wrong(
        lexer.at(), absl::StrCat(Quoted(change), " can never be: nothing falls by more than all"));
  }
  limit.value = limit.relative || points ? *value / 100 : *value;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Limit> ParseLimit(std::string_view text) {
  Lexer lexer(text);
  lexer.SkipSpaces();
  Limit limit;
  limit.text = std::string(lexer.Rest());
  if (lexer.AtEnd()) {
    return lexer.Wrong(lexer.at(), "there is no limit, as in 'spinning > +5pt'");
  }
  check::SelectorKeys keys;
  absl::Status status = ParseSelector(lexer, limit.selector, limit.phase, keys);
  if (status.ok()) status = TakeQuantity(lexer, limit);
  if (status.ok()) status = TakeChange(lexer, limit);
  if (!status.ok()) return status;
  return limit;
}

}  // namespace vcpulse::compare

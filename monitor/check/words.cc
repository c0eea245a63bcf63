#include "monitor/check/words.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "monitor/report/text_format.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::check {
namespace {

std::string Seconds(int64_t ns) { return report::DurationText(static_cast<double>(ns)); }

using Kind = Quantity::Kind;

// With more digits than the quantity has by itself where `digits` is more than 1.
std::string WithDigits(double value, int digits, const Quantity& quantity) {
  if (quantity.IsNumber()) {
    return absl::StrFormat("%.*f", digits - 1 + metric::InfoOf(quantity.metric).decimals, value);
  }
  if (quantity.kind != Kind::kLongest) return absl::StrFormat("%.*f %%", digits, value * 100);
  // What would be rounded to "1000.0 ms" is "1.0 s".
  const double rounding_ns = 0.5e6 * std::pow(10, -digits);
  const bool in_seconds = std::abs(value) >= 1e9 - rounding_ns;
  return absl::StrFormat("%.*f %s", digits, value / (in_seconds ? 1e9 : 1e6),
                         in_seconds ? "s" : "ms");
}

// A limit that was computed, which may be a range.
std::string BaselineLimitText(const Quantity& quantity, const Bounds& limit) {
  const std::string low = WithDigits(limit.low, 1, quantity);
  const std::string high = WithDigits(limit.high, 1, quantity);
  return low == high ? low : absl::StrCat(low, " to ", high);
}

std::string SpanText(const WorstSpan& span) {
  constexpr int64_t kSecond_ns = 1'000'000'000;
  const int digits = span.to_ns - span.from_ns >= kSecond_ns ? 1 : 3;
  return absl::StrFormat("from %.*f s to %.*f s", digits, ToSeconds(span.from_ns), digits,
                         ToSeconds(span.to_ns));
}

}  // namespace

std::string Clean(std::string_view text) {
  std::string out = Printable(text);
  MakeUtf8(&out);
  return out;
}

std::string ObservedText(const Expectation& expectation, const Finding& finding) {
  if (!finding.observed) return "nothing measured";
  const double limit = finding.limit ? finding.limit->low : expectation.limit;
  return absl::StrCat(ToString(expectation.quantity), " ",
                      BoundsText(expectation.quantity, *finding.observed, limit));
}

std::string WantedText(const Expectation& expectation, const Finding& finding) {
  const auto comparison = ToAbsl(ToString(expectation.comparison));
  if (!expectation.UsesBaseline()) {
    return absl::StrCat(comparison, " ", LimitText(expectation.quantity, expectation.limit));
  }
  const std::string baseline = BaselineText(expectation);
  if (!finding.limit) return absl::StrCat(comparison, " ", baseline);
  return absl::StrCat(comparison, " ", BaselineLimitText(expectation.quantity, *finding.limit),
                      " (", baseline, ")");
}

std::string ComparingText(const Question& question, const Bounds& observed) {
  const Quantity& quantity = question.quantity;
  const Bounds& limit = *question.limit;
  std::string text =
      absl::StrCat(ToString(quantity), " ", BoundsText(quantity, observed, limit.low), ", wanted ",
                   ToAbsl(ToString(question.comparison)), " ");
  if (question.wanted.empty()) return text + LimitText(quantity, limit.low);
  return absl::StrCat(text, BaselineLimitText(quantity, limit), " (", question.wanted, ")");
}

std::string FindingText(const Expectation& expectation, const Finding& finding) {
  if (!finding.reason.empty()) return Clean(finding.reason);
  const std::string observed = ObservedText(expectation, finding);
  return finding.of.empty() ? observed : absl::StrCat(Clean(finding.of), ": ", observed);
}

std::string BaselineText(const Expectation& expectation) {
  const double factor = expectation.baseline_factor;
  const double change = expectation.limit;
  if (factor != 1) return absl::StrFormat("baseline * %.10g", factor);
  if (change == 0) return "baseline";
  const Quantity& quantity = expectation.quantity;
  const bool points = !quantity.IsNumber() && quantity.kind != Kind::kLongest;
  return absl::StrCat("baseline ", change < 0 ? "- " : "+ ",
                      points ? absl::StrFormat("%.10gpt", std::abs(change) * 100)
                             : LimitText(quantity, std::abs(change)));
}

void Counts::Add(Outcome outcome) {
  ++all;
  switch (outcome) {
    case Outcome::kFail:
      ++failed;
      break;
    case Outcome::kInconclusive:
      ++inconclusive;
      break;
    case Outcome::kPass:
      ++passed;
      break;
    case Outcome::kSkip:
      ++skipped;
      break;
  }
}

Counts CountExpectations(const Result& result) {
  Counts counts;
  for (const Judged& judged : result.judged) counts.Add(judged.outcome);
  return counts;
}

std::string VerdictText(const Result& result) {
  const Counts counts = CountExpectations(result);
  std::vector<std::string> parts;
  const auto add = [&parts](size_t count, absl::string_view what) {
    if (count > 0) parts.push_back(absl::StrCat(count, what));
  };
  // From the worst on, so that the first is what the outcome is of; passes are said only where
  // nothing failed or was inconclusive.
  add(counts.failed, " failed");
  add(counts.inconclusive, " inconclusive");
  const bool no_worse = parts.empty();
  if (no_worse && result.outcome == Outcome::kPass) add(counts.passed, " passed");
  add(counts.skipped, " skipped");
  if (no_worse && result.outcome == Outcome::kSkip) add(counts.passed, " passed");
  if (parts.empty()) parts.emplace_back("0 skipped");
  const size_t number = parts.front().find(' ');
  parts.front().insert(number, absl::StrCat(" of ", Plural(counts.all, "expectation")));
  return absl::StrCat(ToAbsl(ToString(result.outcome)), ": ", Listed(parts, parts.size()));
}

std::string RecordingText(const Result& result, std::string_view file) {
  std::string text = absl::StrCat(Clean(file), ": ");
  if (!result.host_name.empty()) absl::StrAppend(&text, Clean(result.host_name), ", ");
  if (result.start_realtime_ns) {
    absl::StrAppend(&text, absl::FormatTime("recorded %Y-%m-%d %H:%M:%S UTC, ",
                                            absl::FromUnixNanos(*result.start_realtime_ns),
                                            absl::UTCTimeZone()));
  }
  return absl::StrCat(text, Seconds(result.duration_ns));
}

std::vector<JudgedTime> TimesOf(const Result& result) {
  std::vector<JudgedTime> times;
  for (const Judged& judged : result.judged) {
    const JudgedTime& time = judged.time ? *judged.time : result;
    if (std::ranges::find(times, time) == times.end()) times.push_back(time);
  }
  if (times.empty()) times.push_back(result);
  return times;
}

std::string PartText(const JudgedTime& time, int64_t recording_ns) {
  if (!time.phase) {
    if (time.judged_ns >= recording_ns) return "the whole recording";
    return absl::StrCat(Seconds(time.judged_ns), " of the recording");
  }
  const std::string phase = absl::StrCat("phase ", Clean(*time.phase));
  if (time.spans == 0) return phase + ", which is not there";
  return absl::StrCat(phase, ", ", Plural(time.spans, "span"), ", ", Seconds(time.judged_ns));
}

std::string ShareText(int64_t part_ns, int64_t whole_ns) {
  return absl::StrFormat("%.1f %%",
                         100 * static_cast<double>(part_ns) / static_cast<double>(whole_ns));
}

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

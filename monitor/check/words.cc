#include "monitor/check/words.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "kvm/text.h"
#include "monitor/report/text_format.h"
#include "monitor/timeline/utf8_texts.h"

namespace vcpulse::check {
namespace {

// Digits beyond the usual that a value may get to be told from its limit.
constexpr int kMostFurtherDigits = 6;
constexpr size_t kMostPhasesNamed = 8;

std::string Formatted(const Quantity& quantity, double value, int further) {
  if (quantity.longest) {
    if (value < 1e3) return absl::StrFormat("%.*f ns", further, value);
    if (value < 1e6) return absl::StrFormat("%.*f us", 1 + further, value / 1e3);
    if (value < 1e9) return absl::StrFormat("%.*f ms", 1 + further, value / 1e6);
    return absl::StrFormat("%.*f s", 1 + further, value / 1e9);
  }
  if (quantity.metric == Metric::kIpc) {
    return absl::StrFormat("%.*f", (value < 0.1 ? 3 : 2) + further, value);
  }
  return absl::StrFormat("%.*f%%", 1 + further, value * 100);
}

std::string At(int64_t ns) { return absl::StrFormat("%.3f s", static_cast<double>(ns) / 1e9); }

std::string Seconds(int64_t ns) { return report::DurationText(static_cast<double>(ns)); }

}  // namespace

std::string Clean(std::string_view text) {
  std::string out = report::Printable(text);
  timeline::MakeUtf8(&out);
  return out;
}

std::string ValueText(const Expectation& expectation, double value) {
  for (int further = 0; further <= kMostFurtherDigits; ++further) {
    std::string text = Formatted(expectation.quantity, value, further);
    if (value == expectation.limit ||
        text != Formatted(expectation.quantity, expectation.limit, further)) {
      return text;
    }
  }
  return Formatted(expectation.quantity, value, 0);
}

std::string BoundsText(const Expectation& expectation, const Bounds& bounds) {
  const std::string low = ValueText(expectation, bounds.low);
  if (std::isinf(bounds.high)) return low + " or more";
  const std::string high = ValueText(expectation, bounds.high);
  return low == high ? low : absl::StrCat(low, " to ", high);
}

std::string ObservedText(const Expectation& expectation, const Finding& finding) {
  if (!finding.observed) return "nothing measured";
  return absl::StrCat(ToString(expectation.quantity), " ",
                      BoundsText(expectation, *finding.observed));
}

std::string WantedText(const Expectation& expectation) {
  const Quantity& quantity = expectation.quantity;
  std::string limit;
  if (quantity.longest) {
    limit = absl::FormatDuration(absl::Nanoseconds(expectation.limit));
  } else if (quantity.metric == Metric::kIpc) {
    limit = absl::StrFormat("%.10g", expectation.limit);
  } else {
    limit = absl::StrFormat("%.10g%%", expectation.limit * 100);
  }
  return absl::StrCat(ToAbsl(ToString(expectation.comparison)), " ", limit);
}

std::string WorstText(const Expectation& expectation, const Finding& finding) {
  if (!finding.worst) return "";
  return absl::StrCat(ValueText(expectation, finding.worst->observed), " from ",
                      At(finding.worst->from_ns), " to ", At(finding.worst->to_ns));
}

std::string FindingText(const Expectation& expectation, const Finding& finding) {
  std::string text = ObservedText(expectation, finding);
  if (finding.outcome != Outcome::kPass) {
    absl::StrAppend(&text, ", wanted ", WantedText(expectation));
    if (finding.worst) absl::StrAppend(&text, "; worst ", WorstText(expectation, finding));
  }
  if (!finding.reason.empty()) absl::StrAppend(&text, "; ", Clean(finding.reason));
  return text;
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
  // From the worst on, so that the first is what the outcome is of; passes are told only alone.
  if (counts.failed > 0) parts.push_back(absl::StrCat(counts.failed, " failed"));
  if (counts.inconclusive > 0) parts.push_back(absl::StrCat(counts.inconclusive, " inconclusive"));
  if (parts.empty() && counts.passed > 0) parts.push_back(absl::StrCat(counts.passed, " passed"));
  if (counts.skipped > 0 || parts.empty()) {
    parts.push_back(absl::StrCat(counts.skipped, " skipped"));
  }
  const size_t number = parts.front().find(' ');
  parts.front().insert(number, absl::StrCat(" of ", report::Plural(counts.all, "expectation")));
  return absl::StrCat(ToAbsl(ToString(result.outcome)), ": ", report::Listed(parts, parts.size()));
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

std::string PartText(const Result& result) {
  if (!result.phase) {
    if (result.judged_ns >= result.duration_ns) return "the whole recording";
    return absl::StrCat(Seconds(result.judged_ns), " of the recording");
  }
  const std::string phase = absl::StrCat("phase ", Clean(*result.phase));
  if (result.spans > 0) {
    return absl::StrCat(phase, ", ", report::Plural(result.spans, "span"), ", ",
                        Seconds(result.judged_ns));
  }
  std::vector<std::string> known;
  std::ranges::transform(result.phases, std::back_inserter(known), Clean);
  return absl::StrCat(phase, ", which never came; ",
                      known.empty() ? "the recording has no marker"
                                    : "there are: " + report::Listed(known, kMostPhasesNamed));
}

}  // namespace vcpulse::check

#include "monitor/check/words.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/check/value_text.h"
#include "monitor/report/text_format.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::check {
namespace {

std::string Seconds(int64_t ns) { return report::DurationText(static_cast<double>(ns)); }

}  // namespace

std::string Clean(std::string_view text) {
  std::string out = Printable(text);
  MakeUtf8(&out);
  return out;
}

std::string ObservedText(const Expectation& expectation, const Finding& finding) {
  if (!finding.observed) return "nothing measured";
  return absl::StrCat(ToString(expectation.quantity), " ",
                      BoundsText(expectation.quantity, *finding.observed, expectation.limit));
}

std::string WantedText(const Expectation& expectation) {
  return absl::StrCat(ToAbsl(ToString(expectation.comparison)), " ",
                      LimitText(expectation.quantity, expectation.limit));
}

std::string FindingText(const Expectation& expectation, const Finding& finding) {
  if (!finding.reason.empty()) return Clean(finding.reason);
  return ObservedText(expectation, finding);
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

std::string PartText(const Result& result) {
  if (!result.phase) {
    if (result.judged_ns >= result.duration_ns) return "the whole recording";
    return absl::StrCat(Seconds(result.judged_ns), " of the recording");
  }
  const std::string phase = absl::StrCat("phase ", Clean(*result.phase));
  if (result.spans == 0) return phase + ", which never came";
  return absl::StrCat(phase, ", ", Plural(result.spans, "span"), ", ", Seconds(result.judged_ns));
}

}  // namespace vcpulse::check

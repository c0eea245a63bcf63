#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "monitor/check/render.h"
#include "monitor/check/words.h"

namespace vcpulse::check {
namespace {

constexpr const char* kSubtest = "  ";  // one level of nesting

// One line in which '#' begins nothing.
std::string Name(std::string_view text) {
  std::string out = Clean(text);
  std::ranges::replace(out, '#', '?');
  return out;
}

// "ok 1 - NAME # SKIP WHY". `why` of a pass or a failure is no directive, so it begins with a word
// that is none.
std::string ResultLine(Outcome outcome, size_t number, std::string_view name,
                       std::string_view why) {
  const bool ok = outcome == Outcome::kPass || outcome == Outcome::kSkip;
  std::string line = absl::StrCat(ok ? "ok " : "not ok ", number, " - ", Name(name));
  std::string directive;
  if (outcome == Outcome::kSkip) directive = " SKIP";
  if (outcome == Outcome::kInconclusive) directive = " ERROR inconclusive";
  const std::string said = Name(why);
  if (!directive.empty() || !said.empty()) absl::StrAppend(&line, " #", directive);
  if (!said.empty()) {
    absl::StrAppend(&line, outcome == Outcome::kInconclusive ? ": " : " ", said);
  }
  return line + "\n";
}

std::string SubtestLine(const Expectation& expectation, size_t number, const Finding& finding) {
  const std::string why =
      finding.outcome == Outcome::kSkip ? finding.reason : FindingText(expectation, finding);
  return kSubtest + ResultLine(finding.outcome, number, finding.subject, why);
}

// Why all of an expectation was skipped: its findings say it below.
std::string WhySkipped(const Judged& judged) {
  return judged.findings.empty() ? "" : judged.findings.front().reason;
}

std::string Test(const Judged& judged, size_t number) {
  std::string out =
      absl::StrCat(kSubtest, "KTAP version 1\n", kSubtest, "1..", judged.findings.size(), "\n");
  for (size_t i = 0; i < judged.findings.size(); ++i) {
    out += SubtestLine(judged.expectation, i + 1, judged.findings[i]);
  }
  return out + ResultLine(judged.outcome, number, judged.expectation.text,
                          judged.outcome == Outcome::kSkip ? WhySkipped(judged) : "");
}

}  // namespace

std::string RenderKtap(const Result& result, std::string_view file) {
  std::string out = absl::StrCat("KTAP version 1\n1..", result.judged.size(), "\n");
  if (!result.degraded.empty()) absl::StrAppend(&out, "# DEGRADED: ", Clean(result.degraded), "\n");
  absl::StrAppend(&out, "# ", RecordingText(result, file), "\n");
  for (const JudgedTime& time : TimesOf(result)) {
    absl::StrAppend(&out, "# judged: ", PartText(time, result.duration_ns), "\n");
  }
  if (result.baseline) absl::StrAppend(&out, "# baseline: ", Clean(*result.baseline), "\n");
  for (size_t i = 0; i < result.judged.size(); ++i) out += Test(result.judged[i], i + 1);
  for (const std::string& note : result.notes) absl::StrAppend(&out, "# note: ", Clean(note), "\n");
  return absl::StrCat(out, "# ", VerdictText(result), "\n");
}

}  // namespace vcpulse::check

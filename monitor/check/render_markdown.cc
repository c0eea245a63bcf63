#include "absl/strings/str_cat.h"
#include "monitor/check/render.h"
#include "monitor/check/words.h"

namespace vcpulse::check {
namespace {

constexpr std::string_view kMeaningful = "\\`*_[]<>|~&#$@!";

std::string Bold(Outcome outcome) {
  return absl::StrCat("**", std::string(ToString(outcome)), "**");
}

std::string OutcomeText(Outcome outcome) {
  return outcome == Outcome::kPass ? "PASS" : Bold(outcome);
}

// Absent is "-".
std::string Cell(std::string_view text) { return text.empty() ? "-" : MarkdownText(text); }

std::string Row(const Expectation& expectation, const Finding& finding) {
  const Quantity& quantity = expectation.quantity;
  std::string observed;
  const double limit = finding.limit ? finding.limit->low : expectation.limit;
  if (finding.observed) observed = BoundsText(quantity, *finding.observed, limit);
  std::string worst;
  if (finding.worst) worst = WorstText(quantity, *finding.worst, limit);
  std::string subject = finding.subject;
  if (!finding.of.empty()) absl::StrAppend(&subject, " (", finding.of, ")");
  // Of a FAIL that was observed the other cells say all of the reason.
  const bool is_told = finding.outcome == Outcome::kFail && finding.observed;
  return absl::StrCat("| ", OutcomeText(finding.outcome), " | ", Cell(subject), " | ",
                      Cell(observed), " | ", Cell(WantedText(expectation, finding)), " | ",
                      Cell(worst), " | ", Cell(is_told ? "" : finding.reason), " |\n");
}

std::string Section(const Judged& judged) {
  const Expectation& expectation = judged.expectation;
  std::string out =
      absl::StrCat("\n", OutcomeText(judged.outcome), " ", MarkdownText(expectation.text),
                   "\n\n| outcome | subject | ", MarkdownText(ToString(expectation.quantity)),
                   " | wanted | worst | why |\n| --- | --- | --- | --- | --- | --- |\n");
  for (const Finding& finding : judged.findings) out += Row(expectation, finding);
  return out;
}

}  // namespace

std::string MarkdownText(std::string_view text) {
  std::string out;
  for (const char c : Clean(text)) {
    if (kMeaningful.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string RenderMarkdown(const Result& result, std::string_view file) {
  std::string out = absl::StrCat("### ", MarkdownText(VerdictText(result)), "\n\n");
  if (!result.degraded.empty()) {
    absl::StrAppend(&out, "**DEGRADED**: ", MarkdownText(result.degraded), "  \n");
  }
  absl::StrAppend(&out, "recording: ", MarkdownText(RecordingText(result, file)));
  for (const JudgedTime& time : TimesOf(result)) {
    absl::StrAppend(&out, "  \njudged: ", MarkdownText(PartText(time, result.duration_ns)));
  }
  if (result.baseline) absl::StrAppend(&out, "  \nbaseline: ", MarkdownText(*result.baseline));
  out += "\n";
  for (const Judged& judged : result.judged) out += Section(judged);
  if (!result.notes.empty()) out += "\n";
  for (const std::string& note : result.notes) {
    absl::StrAppend(&out, "* ", MarkdownText(note), "\n");
  }
  return out;
}

}  // namespace vcpulse::check

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "monitor/check/render.h"
#include "monitor/check/words.h"
#include "monitor/report/text_format.h"

namespace vcpulse::check {
namespace {

// As wide as the longest outcome, INCONCLUSIVE.
constexpr size_t kOutcomeWidth = 12;
constexpr size_t kIndent = 2;
// A longer subject moves its own line only.
constexpr size_t kWidestSubject = 40;

report::Colour ColourOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFail:
      return report::Colour::kRed;
    case Outcome::kInconclusive:
      return report::Colour::kYellow;
    case Outcome::kPass:
      return report::Colour::kGreen;
    case Outcome::kSkip:
      return report::Colour::kDim;
  }
  return report::Colour::kNone;
}

std::string Padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

// Paints the outcome that `line` has at `offset`, once its width no longer matters.
void Paint(std::string& line, size_t offset, Outcome outcome) {
  const std::string name(ToString(outcome));
  line.replace(offset, name.size(), report::Painted(name, ColourOf(outcome)));
}

std::string ExpectationLine(const Judged& judged, const TextOptions& options) {
  const std::string outcome(ToString(judged.outcome));
  std::string line =
      absl::StrCat(Padded(outcome, kOutcomeWidth + kIndent), Clean(judged.expectation.text), "\n");
  if (options.colour) Paint(line, 0, judged.outcome);
  return line;
}

std::string FindingLines(const Expectation& expectation, const Finding& finding,
                         size_t subject_width, const TextOptions& options) {
  const std::string outcome(ToString(finding.outcome));
  const std::string head =
      absl::StrCat(std::string(kIndent, ' '), Padded(outcome, kOutcomeWidth + kIndent),
                   Padded(Clean(finding.subject), subject_width), "  ");
  std::string lines = report::Wrapped(head, FindingText(expectation, finding));
  if (options.colour) Paint(lines, kIndent, finding.outcome);
  return lines;
}

std::string Lines(const Judged& judged, const TextOptions& options) {
  std::vector<const Finding*> findings;
  size_t subject_width = 0;
  for (const Finding& finding : judged.findings) {
    findings.push_back(&finding);
    subject_width = std::max(subject_width, Clean(finding.subject).size());
  }
  std::ranges::stable_sort(findings, std::ranges::greater{}, &Finding::outcome);
  std::string lines = ExpectationLine(judged, options);
  for (const Finding* finding : findings) {
    lines += FindingLines(judged.expectation, *finding, std::min(subject_width, kWidestSubject),
                          options);
  }
  return lines;
}

}  // namespace

std::string RenderText(const Result& result, std::string_view file, const TextOptions& options) {
  std::string text;
  if (!result.degraded.empty()) text += report::Wrapped("DEGRADED: ", result.degraded);
  text += report::Wrapped("", RecordingText(result, file));
  for (const JudgedTime& time : TimesOf(result)) {
    text += report::Wrapped("judged: ", PartText(time, result.duration_ns));
  }
  if (result.baseline) text += report::Wrapped("baseline: ", Clean(*result.baseline));
  text += '\n';
  for (const Judged& judged : result.judged) text += Lines(judged, options);
  text += '\n';
  for (const std::string& note : result.notes) text += report::Wrapped("note: ", Clean(note));
  std::string verdict = VerdictText(result) + "\n";
  if (options.colour) Paint(verdict, 0, result.outcome);
  return text + verdict;
}

}  // namespace vcpulse::check

#include "monitor/check/quantifier.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/check/words.h"
#include "monitor/report/text_format.h"

namespace vcpulse::check {
namespace {

std::string DurationText(int64_t ns) { return report::DurationText(static_cast<double>(ns)); }

bool AllAre(Outcome outcome, const std::vector<Finding>& findings) {
  return std::ranges::all_of(findings,
                             [outcome](const Finding& f) { return f.outcome == outcome; });
}

// How far what was observed is from what was wanted.
double Distance(const Finding& finding, const Expectation& expectation) {
  if (!finding.observed) return std::numeric_limits<double>::infinity();
  const Bounds limit =
      finding.limit.value_or(Bounds{.low = expectation.limit, .high = expectation.limit});
  return std::max(finding.observed->low - limit.high, limit.low - finding.observed->high);
}

const Finding& Deciding(const Expectation& expectation, const std::vector<Finding>& findings) {
  if (AllAre(Outcome::kFail, findings)) {
    return *std::ranges::min_element(
        findings, {}, [&](const Finding& finding) { return Distance(finding, expectation); });
  }
  for (const Outcome outcome : {Outcome::kPass, Outcome::kInconclusive}) {
    const auto found = std::ranges::find(findings, outcome, &Finding::outcome);
    if (found != findings.end()) return *found;
  }
  return *std::ranges::find(findings, Outcome::kSkip, &Finding::outcome);
}

}  // namespace

Finding AnyOf(const Expectation& expectation, const std::string& whom,
              const std::vector<Finding>& findings) {
  Finding any = Deciding(expectation, findings);
  any.of = std::exchange(any.subject, whom);
  if (any.outcome == Outcome::kFail && findings.size() > 1) {
    any.reason = absl::StrCat("none of ", findings.size(), ", nearest ", any.of, ": ", any.reason);
  } else if (!any.reason.empty()) {
    any.reason = absl::StrCat(any.of, ": ", any.reason);
  }
  // What was skipped might have sufficed.
  if (any.outcome == Outcome::kSkip && !AllAre(Outcome::kSkip, findings)) {
    any.outcome = Outcome::kInconclusive;
  }
  return any;
}

Finding SumOf(const Question& question, const std::string& whom,
              const std::vector<Finding>& findings, const std::vector<std::string>& missing,
              int64_t together_ns) {
  Finding sum;
  sum.subject = whom;
  sum.judged_ns = together_ns;
  if (missing.empty() && AllAre(Outcome::kSkip, findings)) {
    sum.reason = findings.front().reason;
    return sum;
  }
  sum.of = Plural(findings.size(), "vCPU");
  sum.outcome = Outcome::kInconclusive;
  std::string doubt = missing.empty() ? "" : missing.front();
  bool has_evidence = false;
  Bounds part_ns;
  for (const Finding& finding : findings) {
    const bool enough = finding.reason.empty() && finding.observed;
    const Bounds share = enough ? *finding.observed : Bounds{.low = 0, .high = 1};
    part_ns.low += share.low * static_cast<double>(finding.judged_ns);
    part_ns.high += share.high * static_cast<double>(finding.judged_ns);
    sum.ticks += finding.ticks;
    sum.unknown_ns += enough ? finding.unknown_ns : finding.judged_ns;
    if (!enough && doubt.empty()) doubt = absl::StrCat(finding.subject, ": ", finding.reason);
    has_evidence = has_evidence || enough;
  }
  sum.reason = doubt;
  if (!has_evidence || together_ns <= 0) return sum;
  const auto together = static_cast<double>(together_ns);
  sum.observed = Bounds{
      .low = part_ns.low / together,
      .high = missing.empty() ? part_ns.high / together : std::numeric_limits<double>::infinity()};
  sum.reason = question.no_limit;
  if (!question.limit) return sum;
  if (!question.wanted.empty()) sum.limit = question.limit;
  sum.outcome = JudgeBounds(*sum.observed, question.comparison, *question.limit);
  sum.reason.clear();
  if (sum.outcome == Outcome::kPass) return sum;
  sum.reason = absl::StrCat(sum.of, ": ", ComparingText(question, *sum.observed));
  if (sum.outcome == Outcome::kFail) return sum;
  if (doubt.empty()) {
    doubt = sum.unknown_ns > 0
                ? absl::StrCat(DurationText(sum.unknown_ns), " of their time is not known")
                : "the baseline is a range";
  }
  absl::StrAppend(&sum.reason, ": ", doubt);
  return sum;
}

}  // namespace vcpulse::check

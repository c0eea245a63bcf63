#include "monitor/check/finding.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/text.h"
#include "monitor/check/value_text.h"
#include "monitor/report/text_format.h"

namespace vcpulse::check {
namespace {

std::string Duration(int64_t ns) { return report::DurationText(static_cast<double>(ns)); }

std::string ShareText(int64_t part_ns, int64_t whole_ns) {
  return absl::StrFormat("%.1f %%",
                         100 * static_cast<double>(part_ns) / static_cast<double>(whole_ns));
}

// What was observed and wanted.
std::string Comparing(const Question& question, const Bounds& observed, const Finding& finding) {
  std::string text = absl::StrCat(ToString(question.quantity), " ",
                                  BoundsText(question.quantity, observed, question.limit),
                                  ", wanted ", ToAbsl(ToString(question.comparison)), " ",
                                  LimitText(question.quantity, question.limit));
  if (finding.outcome == Outcome::kInconclusive) {
    absl::StrAppend(&text, ": ", ShareText(finding.unknown_ns, finding.judged_ns), " of ",
                    Duration(finding.judged_ns), " is not known");
  } else if (finding.worst) {
    absl::StrAppend(&text, "; worst ",
                    WorstText(question.quantity, *finding.worst, question.limit));
  }
  return text;
}

std::string ReasonOf(const Question& question, const Subject& subject, const Watched& watched,
                     const Finding& finding, Why why, const std::string& degraded_reason) {
  if (subject.unopened && finding.ticks == 0 && why != Why::kNoCounters) {
    return absl::StrCat("it could not be opened: ", Printable(*subject.unopened));
  }
  const auto label = ToAbsl(metric::InfoOf(question.quantity.metric).label);
  switch (why) {
    case Why::kBounds:
      return finding.outcome == Outcome::kPass
                 ? ""
                 : Comparing(question, *watched.tallied.observed, finding);
    case Why::kNoCounters:
      return absl::StrCat(ToString(question.quantity),
                          " needs hardware counters, and none was read",
                          degraded_reason.empty() ? "" : ": ", Printable(degraded_reason));
    case Why::kNothingToJudge:
      return "there is no time to judge";
    case Why::kTooFewTicks:
      return absl::StrCat(Plural(finding.ticks, "tick"), " measured in ",
                          Duration(finding.judged_ns), ", wanted >= ", question.min_ticks);
    case Why::kTooLittleMeasured:
      return absl::StrCat(ShareText(watched.support.measured_ns, finding.judged_ns), " of ",
                          Duration(finding.judged_ns),
                          " measured, wanted >= ", LimitText(kGaps, question.min_measured));
    case Why::kNothingObserved:
      return finding.unknown_ns == 0
                 ? absl::StrCat("HALTED all the time, so there is no ", label, " to judge")
                 : absl::StrCat("its ", label, " was never counted while it was not HALTED");
  }
  return "";
}

}  // namespace

Finding MakeFinding(const Question& question, const Subject& subject, const Watched& watched,
                    int64_t start_ns, const std::string& degraded_reason) {
  const Decision decision =
      Decide(question, watched.tallied.observed, watched.support, subject.degraded);
  Finding finding{.subject = subject.label,
                  .vm = subject.vm_name,
                  .vcpu = subject.vcpu,
                  .outcome = decision.outcome,
                  .ticks = watched.support.ticks,
                  .judged_ns = watched.support.judged_ns,
                  .unknown_ns = watched.tallied.unknown_ns};
  // Gaps are measured by what is not.
  const bool measured = finding.ticks > 0 || question.quantity.kind == Quantity::Kind::kGaps;
  if (decision.why != Why::kNoCounters && measured) {
    finding.observed = watched.tallied.observed;
  }
  const std::optional<ObservedRange>& worst = watched.tallied.worst;
  if (decision.outcome == Outcome::kFail && worst) {
    finding.worst = WorstSpan{.from_ns = worst->when.from_ns - start_ns,
                              .to_ns = worst->when.to_ns - start_ns,
                              .observed = worst->observed};
  }
  finding.reason = ReasonOf(question, subject, watched, finding, decision.why, degraded_reason);
  return finding;
}

Finding MissingSubject(const std::string& whom, const std::string& reason) {
  return {.subject = whom, .outcome = Outcome::kInconclusive, .reason = reason};
}

}  // namespace vcpulse::check

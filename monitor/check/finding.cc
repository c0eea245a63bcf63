#include "monitor/check/finding.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "kvm/text.h"
#include "monitor/report/text_format.h"

namespace vcpulse::check {
namespace {

enum class Unit { kPercent, kPlain, kDuration };

Unit UnitOf(const Quantity& quantity) {
  if (quantity.longest) return Unit::kDuration;
  return quantity.metric == Metric::kIpc ? Unit::kPlain : Unit::kPercent;
}

std::string WithDigits(double value, int digits, Unit unit) {
  if (unit == Unit::kPercent) return absl::StrFormat("%.*f %%", digits, value * 100);
  if (unit == Unit::kPlain) return absl::StrFormat("%.*f", digits + 1, value);
  const bool in_seconds = std::abs(value) >= 1e9;
  return absl::StrFormat("%.*f %s", digits, value / (in_seconds ? 1e9 : 1e6),
                         in_seconds ? "s" : "ms");
}

// `value` with a digit behind the point, or with as many as tell it from `limit`: a reason that
// says "5.0 %, wanted <= 5 %" would puzzle.
std::string ValueText(double value, double limit, Unit unit) {
  constexpr int kMostDigits = 6;
  int digits = 1;
  while (digits < kMostDigits && value != limit &&
         WithDigits(value, digits, unit) == WithDigits(limit, digits, unit)) {
    ++digits;
  }
  return WithDigits(value, digits, unit);
}

std::string BoundsText(const Bounds& bounds, double limit, Unit unit) {
  const std::string low = ValueText(bounds.low, limit, unit);
  if (std::isinf(bounds.high)) return absl::StrCat(low, " or more");
  const std::string high = ValueText(bounds.high, limit, unit);
  return low == high ? low : absl::StrCat(low, " to ", high);
}

std::string SpanText(const WorstSpan& span) {
  constexpr int64_t kSecond_ns = 1'000'000'000;
  const int digits = span.to_ns - span.from_ns >= kSecond_ns ? 1 : 3;
  return absl::StrFormat("from %.*f s to %.*f s", digits, static_cast<double>(span.from_ns) / 1e9,
                         digits, static_cast<double>(span.to_ns) / 1e9);
}

std::string Duration(int64_t ns) { return report::DurationText(static_cast<double>(ns)); }

std::string ShareText(int64_t part_ns, int64_t whole_ns) {
  return WithDigits(static_cast<double>(part_ns) / static_cast<double>(whole_ns), 1,
                    Unit::kPercent);
}

// What was observed and wanted.
std::string Comparing(const Question& question, const Finding& finding) {
  const Unit unit = UnitOf(question.quantity);
  std::string text = absl::StrCat(ToString(question.quantity), " ",
                                  BoundsText(*finding.observed, question.limit, unit), ", wanted ",
                                  ToAbsl(ToString(question.comparison)), " ",
                                  LimitText(question.quantity, question.limit));
  if (finding.outcome == Outcome::kInconclusive) {
    absl::StrAppend(&text, ": ", ShareText(finding.unknown_ns, finding.judged_ns), " of ",
                    Duration(finding.judged_ns), " is not known");
  } else if (finding.worst) {
    absl::StrAppend(&text, "; worst ", ValueText(finding.worst->observed, question.limit, unit),
                    " ", SpanText(*finding.worst));
  }
  return text;
}

std::string ReasonOf(const Question& question, const Subject& subject, const Watched& watched,
                     const Finding& finding, Why why, const std::string& degraded_reason) {
  if (subject.unopened && finding.ticks == 0 && why != Why::kNoCounters) {
    return absl::StrCat("it could not be opened: ", report::Printable(*subject.unopened));
  }
  switch (why) {
    case Why::kBounds:
      return finding.outcome == Outcome::kPass ? "" : Comparing(question, finding);
    case Why::kNoCounters:
      return absl::StrCat(ToString(question.quantity),
                          " needs hardware counters, and none was read",
                          degraded_reason.empty() ? "" : ": ", report::Printable(degraded_reason));
    case Why::kNothingToJudge:
      return "there is no time to judge";
    case Why::kTooFewTicks:
      return absl::StrCat(report::Plural(finding.ticks, "tick"), " measured in ",
                          Duration(finding.judged_ns), ", at least ", question.min_ticks,
                          " are needed");
    case Why::kTooLittleMeasured:
      return absl::StrCat(ShareText(watched.support.measured_ns, finding.judged_ns), " of ",
                          Duration(finding.judged_ns), " was measured, at least ",
                          LimitText({.metric = Metric::kGaps}, question.min_measured),
                          " is needed");
    case Why::kNothingObserved:
      return finding.unknown_ns == 0 ? "HALTED all the time, so there is no IPC to judge"
                                     : "its IPC was never counted while it was not HALTED";
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
  if (decision.why != Why::kNoCounters && finding.ticks > 0) {
    finding.observed = watched.tallied.observed;
  }
  const std::optional<ObservedStretch>& worst = watched.tallied.worst;
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

std::string LimitText(const Quantity& quantity, double limit) {
  switch (UnitOf(quantity)) {
    case Unit::kPercent:
      return absl::StrFormat("%g %%", limit * 100);
    case Unit::kPlain:
      return absl::StrFormat("%g", limit);
    case Unit::kDuration:
      return absl::FormatDuration(absl::Nanoseconds(limit));
  }
  return "";
}

}  // namespace vcpulse::check

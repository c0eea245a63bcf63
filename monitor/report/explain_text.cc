#include <cmath>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"
#include "monitor/report/explain.h"
#include "monitor/report/text_format.h"

namespace vcpulse::report {
namespace {

using Is = Comparison::Is;

constexpr int kMostFurtherDigits = 17;  // any two doubles from about 0.01 on differ in these

std::string Text(core::Band band) { return std::string(core::ToString(band)); }
// By an IPC alone it is a hint: "SPINNING?".
std::string Text(core::Band band, core::Rule rule) {
  return Text(band) + (rule == core::Rule::kIpcLow ? "?" : "");
}
std::string Text(core::Rule rule) { return std::string(core::ToString(rule)); }

// With `more` digits than usual.
std::string Number(double value, int more = 0) {
  if (std::isinf(value)) return "infinite";
  if (value >= 999.995) {
    return more == 0 ? Units(value) : absl::StrFormat("%.*f", more - 1, value);
  }
  return value >= 0.095 || value == 0 ? absl::StrFormat("%.*f", 2 + more, value)
                                      : absl::StrFormat("%.*g", 2 + more, value);
}

std::string Share(double value, int more) {
  return absl::StrFormat("%.*f%%", 1 + more, value * 100);
}

struct Sides {
  std::string value;
  std::string threshold;
};

// Both with as few digits as tell them apart: "0.10 < 0.10" would be untrue.
Sides ToldApart(double value, double threshold, bool is_share) {
  const auto text = is_share ? Share : Number;
  Sides sides;
  for (int more = 0; more <= kMostFurtherDigits; ++more) {
    sides = {.value = text(value, more), .threshold = text(threshold, more)};
    if (value == threshold || sides.value != sides.threshold) break;
  }
  return sides;
}

std::string Text(const Comparison& comparison) {
  if (comparison.is == Is::kFact) return comparison.what;
  if (!comparison.value) return comparison.what + " is not measured";
  const Sides sides = ToldApart(*comparison.value, comparison.threshold, comparison.is_share);
  return absl::StrCat(comparison.what, " ", sides.value, " ", std::string(*Sign(comparison.is)),
                      " ", sides.threshold);
}

std::string WithOutcome(const Comparison& comparison) {
  if (!comparison.holds) return Text(comparison);
  return absl::StrCat(Text(comparison), *comparison.holds ? ": holds" : ": fails");
}

std::string VerdictText(core::Band band, core::Rule rule) {
  return absl::StrCat(Text(band, rule), " by rule ", Text(rule));
}

// From what the timeline says.
bool Differs(const Explanation& e) {
  return e.verdict.band != e.recorded.band || e.verdict.rule != e.recorded.rule;
}

std::string RecordedText(const Explanation& e) {
  return e.recorded.band == core::Band::kNone ? "no verdict"
                                              : VerdictText(e.recorded.band, e.recorded.rule);
}

std::string Head(const Explanation& e) {
  std::string line = absl::StrFormat("vCPU %d of VM %s (%sepoch %d) at %.3f s", e.vcpu,
                                     e.vm_name.empty() ? absl::StrCat(e.vm) : Printable(e.vm_name),
                                     e.vm_pid == 0 ? "" : absl::StrCat("pid ", e.vm_pid, ", "),
                                     e.epoch, ToSeconds(e.at_ns));
  if (e.verdict.band == core::Band::kNone) {
    absl::StrAppend(&line, ": no verdict: the epoch had just begun and the window was not full");
    return Wrapped("", line);
  }
  absl::StrAppend(&line, ", window ", DurationText(static_cast<double>(e.features.interval_ns)),
                  ": ");
  if (Differs(e)) {
    absl::StrAppend(&line, "the timeline says ", RecordedText(e), "; judged again now: ");
  }
  absl::StrAppend(&line, VerdictText(e.verdict.band, e.verdict.rule));
  if (e.verdict.confidence_pct > 0) {
    absl::StrAppend(&line, absl::StrFormat(", confidence %.2f", e.verdict.confidence_pct / 100.0));
  }
  if (e.verdict.starved) absl::StrAppend(&line, ", starved");
  return Wrapped("", line);
}

std::string Judges(const Explanation& e) {
  return Wrapped("judged by: ", absl::StrCat(std::string(core::ToString(e.classifier)),
                                             ", profile ", Printable(e.profile),
                                             e.remark.empty() ? "" : "; ", Printable(e.remark)));
}

std::string MeasuredText(const Explanation& e) {
  const core::Features& f = e.features;
  std::string presence = f.residency ? absl::StrCat("residency ", Percent(f.residency), " (by ",
                                                    e.residency_method.value_or("?"), ")")
                                     : "residency unknown";
  absl::StrAppend(&presence, ", on a CPU ", Percent(f.enabled_share), ", waiting ",
                  Percent(f.waiting_share), ", counted ",
                  f.enabled ? Percent(f.running_share) : std::string("-"), " of the time on a CPU");
  std::vector<std::string> measured;
  std::vector<std::string> missing;
  for (size_t i = 0; i < core::kFeatures; ++i) {
    const auto feature = static_cast<core::Feature>(i);
    const std::string name(core::ToString(feature));
    const std::optional<double>& value = f.Value(feature);
    if (value) {
      measured.push_back(absl::StrCat(name, " ", Number(*value)));
    } else {
      missing.push_back(name);
    }
  }
  std::string out = Wrapped("measured: ", presence);
  if (!measured.empty()) out += Wrapped("measured: ", absl::StrJoin(measured, ", "));
  if (!missing.empty()) out += Wrapped("not measured: ", absl::StrJoin(missing, ", "));
  return out;
}

// What the scheduler and KVM counted about then, and what that says.
std::string CountedText(const Explanation& e) {
  if (!e.counted || e.counted->values.empty()) return "";
  std::vector<std::string> values;
  for (const auto& [metric, value] : e.counted->values) {
    const metric::Info& info = metric::InfoOf(metric);
    if (value > 0) values.push_back(absl::StrCat(MetricText(info, value), " ", ToAbsl(info.label)));
  }
  std::string out =
      Wrapped(e.counted->to_ns < e.at_ns ? "counted before it: " : "counted: ",
              absl::StrCat("from ", absl::StrFormat("%.3f", ToSeconds(e.counted->from_ns)), " to ",
                           absl::StrFormat("%.3f s: ", ToSeconds(e.counted->to_ns)),
                           values.empty() ? "nothing" : absl::StrJoin(values, ", ")));
  for (const Cause* const cause : e.counted->causes) {
    out += Wrapped("  ", absl::StrCat(ToAbsl(cause->name), ": ", ToAbsl(cause->meaning)));
  }
  return out;
}

std::string PresenceText(const Explanation& e) {
  const Reasons& reasons = e.reasons;
  std::string out = "Did it run, and was that counted?\n";
  for (const Comparison& comparison : reasons.presence) {
    out += Wrapped("  ", WithOutcome(comparison));
  }
  if (!reasons.decided_by_presence) return out + "  so it ran; the rules below decide the band\n";
  std::string decided = absl::StrCat(VerdictText(reasons.raw.band, reasons.raw.rule), ": ",
                                     reading::WhyByPresence(reasons.raw.rule));
  return out + Wrapped("> ", decided);
}

// "skipped: branches per instruction is not measured", or all conditions and what came of them.
std::string TrialText(const RuleTrial& trial) {
  std::vector<std::string> parts;
  for (const Comparison& condition : trial.conditions) {
    const bool missing = !condition.holds;
    if (missing != (trial.outcome == core::Outcome::kSkipped)) continue;
    const bool fails_among_others =
        trial.outcome == core::Outcome::kFails && trial.conditions.size() > 1 && !*condition.holds;
    parts.push_back(absl::StrCat(Text(condition), fails_among_others ? " (fails)" : ""));
  }
  const std::string all = absl::StrJoin(parts, ", ");
  if (trial.outcome == core::Outcome::kSkipped) return absl::StrCat("skipped: ", all);
  return absl::StrCat(all, ": ", std::string(OutcomeName(trial.outcome)));
}

std::string RulesText(const Reasons& reasons) {
  if (reasons.decided_by_presence) return "";
  std::string out = "Rules, first to last; the first that holds decides (>):\n";
  for (size_t i = 0; i < reasons.rules.size(); ++i) {
    const RuleTrial& trial = reasons.rules[i];
    const char* mark = reasons.fired == i ? "> " : "  ";
    out += Wrapped(absl::StrCat(mark, Text(trial.rule), " (", Text(trial.band, trial.rule), "): "),
                   TrialText(trial));
  }
  if (!reasons.fired) {
    out += Wrapped("> ", absl::StrCat(VerdictText(reasons.raw.band, reasons.raw.rule), ": ",
                                      std::string(reading::Explain(reasons.raw.rule))));
  }
  if (reasons.weak_below) {
    const Sides sides = ToldApart(reasons.raw.confidence, *reasons.weak_below, false);
    out += Wrapped("> ", absl::StrCat("but only with confidence ", sides.value, ", and below ",
                                      sides.threshold, " a verdict is not given: UNKNOWN(weak)"));
  }
  return out;
}

std::string RunnerUpText(const Reasons& reasons) {
  if (!reasons.runner_up) return "";
  const RuleTrial& trial = reasons.rules[*reasons.runner_up];
  std::string text = absl::StrCat(Text(trial.rule), " (", Text(trial.band, trial.rule), ")");
  if (trial.outcome == core::Outcome::kHolds) {
    return Wrapped("runner-up: ", absl::StrCat(text, " holds too, but comes later"));
  }
  std::vector<std::string> failing;
  for (const Comparison& condition : trial.conditions) {
    if (!condition.holds.value_or(true)) failing.push_back(Text(condition));
  }
  return Wrapped(
      "runner-up: ",
      absl::StrCat(text, " came nearest; what it lacks: ", absl::StrJoin(failing, ", ")));
}

std::string SmoothingText(const Explanation& e) {
  if (e.verdict.band == e.verdict.raw_band) return "";
  return Wrapped(
      "smoothed: ",
      absl::StrCat("this window alone is ", VerdictText(e.verdict.raw_band, e.verdict.raw_rule),
                   "; shown is ", VerdictText(e.verdict.band, e.verdict.rule),
                   " of an earlier window, as a change of band needs two of the last "
                   "three windows"));
}

std::string DifferenceText(const Explanation& e) {
  if (!Differs(e)) return "";
  return Wrapped("differs: ", absl::StrCat("the timeline was judged by another version or with "
                                           "more of its beginning; below is why ",
                                           VerdictText(e.verdict.band, e.verdict.rule)));
}

}  // namespace

std::string RenderExplanation(const Explanation& e) {
  if (e.verdict.band == core::Band::kNone) return Head(e) + DifferenceText(e);
  return absl::StrCat(Head(e), DifferenceText(e), Judges(e), MeasuredText(e), CountedText(e), "\n",
                      PresenceText(e), RulesText(e.reasons), RunnerUpText(e.reasons),
                      SmoothingText(e));
}

}  // namespace vcpulse::report

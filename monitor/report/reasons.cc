#include "monitor/report/reasons.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/reading/labels.h"

namespace vcpulse::report {
namespace {

using Is = Comparison::Is;

std::optional<bool> Holds(std::optional<double> value, Is is, double threshold) {
  if (!value) return std::nullopt;
  switch (is) {
    case Is::kBelow:
      return *value < threshold;
    case Is::kAtLeast:
      return *value >= threshold;
    case Is::kAtMost:
      return *value <= threshold;
    case Is::kAbove:
      return *value > threshold;
    case Is::kFact:
      return std::nullopt;
  }
  return std::nullopt;
}

Comparison Compare(std::string_view feature, std::string what, std::optional<double> value, Is is,
                   double threshold, bool is_share) {
  return {.feature = feature,
          .what = std::move(what),
          .value = value,
          .is = is,
          .threshold = threshold,
          .is_share = is_share,
          .holds = Holds(value, is, threshold)};
}

Comparison Share(std::string_view feature, std::string what, std::optional<double> value, Is is,
                 double threshold) {
  return Compare(feature, std::move(what), value, is, threshold, true);
}

// The comparisons of core::JudgePresence, in its order and as far as they decide.
class PresenceQuestions {
 public:
  PresenceQuestions(const core::Features& features, const core::PresenceThresholds& thresholds,
                    core::Band previous)
      : features_(features),
        thresholds_(thresholds),
        floor_(previous == core::Band::kHalted ? thresholds.halted_leave
                                               : thresholds.halted_enter) {}

  std::vector<Comparison> Ask() {
    if (!features_.enabled) {
      AskFact("enabled_share", "time on a CPU: none");
      AskWhetherItWanted();
      return std::move(asked_);
    }
    if (AskShare("enabled_share", "time on a CPU", features_.enabled_share, Is::kBelow, floor_)) {
      AskWhetherItWanted();
      return std::move(asked_);
    }
    if (!features_.cycles_counted && !features_.residency) {
      AskFact("cycles", "cycles: not counted");
      return std::move(asked_);
    }
    if (AskShare("counted_share", "counted share of the time on a CPU", features_.running_share,
                 Is::kBelow, thresholds_.counted_from) ||
        features_.running_share == 0) {
      return std::move(asked_);
    }
    if (features_.never_counted) AskFact("cycles", "cycles: none since the epoch began");
    if (features_.never_counted && features_.ran_since_start_ns >= core::kEnoughToCount_ns) {
      return std::move(asked_);
    }
    if (AskShare("residency", "residency", features_.residency, Is::kBelow, floor_)) {
      const double residency = *features_.residency;
      asked_.push_back(Compare("enabled_over_residency", "time on a CPU over residency",
                               residency > 0 ? features_.enabled_share / residency
                                             : std::numeric_limits<double>::infinity(),
                               Is::kAbove, thresholds_.polling_ratio_above, false));
      if (features_.residency_at_most.value_or(residency) > residency) {
        AskShare("residency_at_most", "residency on the slowest clock",
                 core::MostResidency(features_, thresholds_), Is::kAtLeast,
                 thresholds_.halted_at_most);
      }
      AskWhetherItWanted();
    }
    return std::move(asked_);
  }

 private:
  bool AskShare(std::string_view feature, const char* what, std::optional<double> value, Is is,
                double threshold) {
    asked_.push_back(Share(feature, what, value, is, threshold));
    return asked_.back().holds.value_or(false);
  }
  void AskFact(std::string_view feature, const std::string& what) {
    asked_.push_back({.feature = feature, .what = what});
  }

  // It hardly ran: because it had nothing to do, or because it could not?
  void AskWhetherItWanted() {
    const auto state = reading::StateName(features_.state);
    AskFact("state", absl::StrCat("thread state: ", state ? std::string(*state) : "not read"));
    switch (features_.state) {
      case core::ThreadState::kStopped:
      case core::ThreadState::kPaused:
      case core::ThreadState::kIoWait:
        return;
      case core::ThreadState::kRunnable:
        if (features_.enabled) {
          AskShare("waiting_share", "waiting for a CPU", features_.waiting_share, Is::kAbove,
                   thresholds_.starved_above);
        }
        return;
      default:
        AskShare("waiting_share", "waiting for a CPU", features_.waiting_share, Is::kAbove,
                 thresholds_.mostly_waiting_above);
    }
  }

  const core::Features& features_;
  const core::PresenceThresholds& thresholds_;
  double floor_;
  std::vector<Comparison> asked_;
};

Comparison CompareCondition(const core::Condition& condition, const core::Features& features) {
  const std::optional<double>& value = features.Value(condition.feature);
  const std::string_view name = reading::FeatureName(condition.feature);
  const std::string what(core::ToString(condition.feature));
  switch (condition.is) {
    case core::Condition::Is::kBelowIfMeasured:
      if (!value) break;
      [[fallthrough]];
    case core::Condition::Is::kBelow:
      return Compare(name, what, value, Is::kBelow, condition.threshold, false);
    case core::Condition::Is::kAtLeast:
      return Compare(name, what, value, Is::kAtLeast, condition.threshold, false);
    case core::Condition::Is::kAtMost:
      return Compare(name, what, value, Is::kAtMost, condition.threshold, false);
    case core::Condition::Is::kNotMeasured:
      break;
  }
  return {.feature = name,
          .what = absl::StrCat(what, value ? " is measured" : " is not measured"),
          .holds = !value.has_value()};
}

// How far a rule is from holding: failing conditions, then the distance of their values.
std::pair<size_t, double> DistanceOf(const RuleTrial& trial) {
  size_t failing = 0;
  double distance = 0;
  for (const Comparison& condition : trial.conditions) {
    if (condition.holds.value_or(true)) continue;
    ++failing;
    if (condition.value && *condition.value > 0 && condition.threshold > 0) {
      distance += std::abs(std::log(*condition.value / condition.threshold));
    } else {
      distance = std::numeric_limits<double>::infinity();
    }
  }
  return {failing, distance};
}

void FindRunnerUp(Reasons& reasons) {
  const size_t begin = reasons.fired ? *reasons.fired + 1 : 0;
  std::optional<size_t> nearest;
  for (size_t i = begin; i < reasons.rules.size(); ++i) {
    const RuleTrial& trial = reasons.rules[i];
    if (trial.outcome == core::Outcome::kSkipped) continue;
    if (trial.outcome == core::Outcome::kHolds) {
      reasons.runner_up = i;
      return;
    }
    if (!nearest || DistanceOf(trial) < DistanceOf(reasons.rules[*nearest])) nearest = i;
  }
  reasons.runner_up = nearest;
}

void TryEvidence(const core::Features& features, const core::EvidenceThresholds& thresholds,
                 Reasons& reasons) {
  const core::EvidenceRules rules(thresholds);
  for (const core::EvidenceRule& rule : rules.rules()) {
    RuleTrial trial{.rule = rule.rule, .band = rule.band, .outcome = core::Try(rule, features)};
    for (const core::Condition& condition : rule.Conditions()) {
      trial.conditions.push_back(CompareCondition(condition, features));
    }
    if (trial.outcome == core::Outcome::kHolds && rule.confidence > 0) {
      trial.confidence = rules.Confidence(rule, features);
    }
    reasons.rules.push_back(std::move(trial));
  }
  size_t fired = 0;
  reasons.raw = rules.Judge(features, &fired);
  if (fired < reasons.rules.size()) reasons.fired = fired;
  if (reasons.raw.rule == core::Rule::kWeak) reasons.weak_below = thresholds.weak_below;
}

void TryIpcBands(const core::Features& features, const core::IpcBandsThresholds& thresholds,
                 Reasons& reasons) {
  const auto try_rule = [&](core::Rule rule, core::Band band, Is is, double threshold) {
    Comparison condition =
        Compare("ipc", "IPC", features.Value(core::Feature::kIpc), is, threshold, false);
    core::Outcome outcome = core::Outcome::kSkipped;
    if (condition.holds) outcome = *condition.holds ? core::Outcome::kHolds : core::Outcome::kFails;
    if (outcome == core::Outcome::kHolds && !reasons.fired) reasons.fired = reasons.rules.size();
    reasons.rules.push_back(
        {.rule = rule, .band = band, .outcome = outcome, .conditions = {std::move(condition)}});
  };
  try_rule(core::Rule::kIpcLow, core::Band::kSpinning, Is::kBelow, thresholds.spinning_below);
  try_rule(core::Rule::kIpcHigh, core::Band::kProductive, Is::kAtLeast, thresholds.productive_from);
  reasons.raw = core::JudgeIpcBands(features, thresholds);
}

}  // namespace

std::optional<std::string_view> Sign(Is is) {
  switch (is) {
    case Is::kBelow:
      return "<";
    case Is::kAtLeast:
      return ">=";
    case Is::kAtMost:
      return "<=";
    case Is::kAbove:
      return ">";
    case Is::kFact:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string_view OutcomeName(core::Outcome outcome) {
  switch (outcome) {
    case core::Outcome::kHolds:
      return "holds";
    case core::Outcome::kFails:
      return "fails";
    case core::Outcome::kSkipped:
      return "skipped";
  }
  return "-";
}

Reasons FindReasons(const core::Features& features, const core::Profile& profile,
                    core::Classifier classifier, core::Band previous) {
  Reasons reasons;
  reasons.presence = PresenceQuestions(features, profile.presence, previous).Ask();
  const auto presence = core::JudgePresence(features, profile.presence, previous);
  if (presence) {
    reasons.raw = *presence;
    reasons.decided_by_presence = true;
    return reasons;
  }
  if (classifier == core::Classifier::kEvidence) {
    TryEvidence(features, profile.evidence, reasons);
  } else {
    TryIpcBands(features, profile.ipc_bands, reasons);
  }
  FindRunnerUp(reasons);
  return reasons;
}

}  // namespace vcpulse::report

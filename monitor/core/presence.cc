#include "monitor/core/presence.h"

#include <algorithm>

namespace vcpulse::core {
namespace {

// A time of zero and a thread state are facts; so is a residency near zero.
constexpr double kMeasured = 0.99;
// The same where nothing was measured that would tell a halted vCPU from one that waits for a CPU.
constexpr double kUnproven = 0.60;

Judgement Unknown(Rule reason) { return {Band::kUnknown, reason, 0}; }

Judgement Halted(Rule rule, const Features& features) {
  const bool proven = (features.waiting_share || features.state != ThreadState::kNotRead) &&
                      !features.never_counted;
  return {Band::kHalted, rule, proven ? kMeasured : kUnproven};
}

bool MostlyWaiting(const Features& features, const PresenceThresholds& thresholds) {
  return features.waiting_share.value_or(0) > thresholds.mostly_waiting_above;
}

// Stopped by a signal or held by its VMM.
bool IsPaused(ThreadState state) {
  return state == ThreadState::kStopped || state == ThreadState::kPaused;
}

Judgement JudgeNothingRun(const Features& features, const PresenceThresholds& thresholds) {
  if (features.state == ThreadState::kRunnable) {
    return {Band::kUnknown, Rule::kStarved, kMeasured};
  }
  if (IsPaused(features.state)) return {Band::kUnknown, Rule::kPaused, kMeasured};
  if (features.state == ThreadState::kIoWait) return {Band::kUnknown, Rule::kIoWait, kMeasured};
  if (MostlyWaiting(features, thresholds)) return Unknown(Rule::kStarved);
  if (features.state == ThreadState::kBlocked) return Halted(Rule::kBlocked, features);
  return Unknown(Rule::kStateUnknown);
}

// It hardly ran: HALTED by `rule`, unless it wanted to.
Judgement JudgeHardlyRun(const Features& features, const PresenceThresholds& thresholds,
                         Rule rule) {
  if (features.state == ThreadState::kRunnable) {
    // It may wait since it was preempted, or have been woken just now.
    return Unknown(IsStarved(features, thresholds) ? Rule::kStarved : Rule::kStateUnknown);
  }
  if (IsPaused(features.state)) return Unknown(Rule::kPaused);
  if (features.state == ThreadState::kIoWait) return Unknown(Rule::kIoWait);
  if (MostlyWaiting(features, thresholds)) return Unknown(Rule::kStarved);
  return Halted(rule, features);
}

// Its residency is below `floor`: HALTED as surely as the clock of its core is known.
Judgement JudgeLowResidency(const Features& features, const PresenceThresholds& thresholds,
                            double floor) {
  const double residency = *features.residency;
  const bool polled = features.enabled_share > thresholds.polling_ratio_above * residency;
  Judgement judgement =
      JudgeHardlyRun(features, thresholds, polled ? Rule::kPolling : Rule::kResidency);
  if (judgement.band != Band::kHalted) return judgement;
  const double at_most = MostResidency(features, thresholds);
  if (at_most < floor) return judgement;
  if (at_most >= thresholds.halted_at_most) return Unknown(Rule::kSlowClock);
  judgement.confidence = kUnproven;
  return judgement;
}

}  // namespace

double MostResidency(const Features& features, const PresenceThresholds& thresholds) {
  const double residency = features.residency.value_or(0);
  const double at_most = features.residency_at_most.value_or(residency);
  return std::min(at_most, std::max(residency, residency / thresholds.slowest_clock));
}

std::optional<Judgement> JudgePresence(const Features& features,
                                       const PresenceThresholds& thresholds, Band previous) {
  const double floor =
      previous == Band::kHalted ? thresholds.halted_leave : thresholds.halted_enter;
  if (!features.enabled) return JudgeNothingRun(features, thresholds);
  if (features.enabled_share < floor) {
    return JudgeHardlyRun(features, thresholds, Rule::kResidency);
  }
  if (!features.cycles_counted && !features.residency) return Unknown(Rule::kNoCounters);
  if (features.running_share == 0 || features.running_share < thresholds.counted_from) {
    return Unknown(Rule::kNotCounted);
  }
  if (features.never_counted && features.ran_since_start_ns >= kEnoughToCount_ns) {
    return Unknown(Rule::kNotCounted);
  }
  if (!features.residency) return Unknown(Rule::kNoResidency);
  if (*features.residency < floor) return JudgeLowResidency(features, thresholds, floor);
  return std::nullopt;
}

bool IsStarved(const Features& features, const PresenceThresholds& thresholds) {
  const bool waits_since_before = !features.enabled && features.state == ThreadState::kRunnable;
  return waits_since_before || features.waiting_share.value_or(0) > thresholds.starved_above;
}

}  // namespace vcpulse::core

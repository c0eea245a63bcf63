#include "monitor/core/presence.h"

namespace vcpulse::core {
namespace {

// A time of zero and a thread state are facts; so is a residency near zero.
constexpr double kMeasured = 0.99;
// The same where nothing was measured that would tell a halted vCPU from one that waits for a CPU.
constexpr double kUnproven = 0.60;

Judgement Unknown(Rule reason) { return {Band::kUnknown, reason, 0}; }

Judgement Halted(Rule rule, const Features& features) {
  const bool proven = features.waiting_share || features.state != ThreadState::kNotRead;
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
  if (MostlyWaiting(features, thresholds)) return Unknown(Rule::kStarved);
  return Halted(rule, features);
}

}  // namespace

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
  if (!features.residency) return Unknown(Rule::kNoResidency);
  if (*features.residency < floor) {
    const bool polled =
        features.enabled_share > thresholds.polling_ratio_above * *features.residency;
    return JudgeHardlyRun(features, thresholds, polled ? Rule::kPolling : Rule::kResidency);
  }
  return std::nullopt;
}

bool IsStarved(const Features& features, const PresenceThresholds& thresholds) {
  const bool waits_since_before = !features.enabled && features.state == ThreadState::kRunnable;
  return waits_since_before || features.waiting_share.value_or(0) > thresholds.starved_above;
}

}  // namespace vcpulse::core

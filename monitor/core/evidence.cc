#include "monitor/core/evidence.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace vcpulse::core {
namespace {

// Before what lowers them. A count of PAUSE names a spin; a tight loop is one by its looks alone.
constexpr double kByPause = 0.95;
constexpr double kBySpinIpc = 0.85;
constexpr double kBySteadyLoop = 0.75;
constexpr double kByLoop = 0.60;
constexpr double kByBareLoop = 0.40;
constexpr double kByL1dMisses = 0.75;
constexpr double kByMisses = 0.90;
constexpr double kByProgress = 0.95;
constexpr double kNone = 0;

// At a threshold a feature leaves this much of the confidence.
constexpr double kMarginAtThreshold = 0.6;
const double kFullMarginFrom = std::exp(1 - kMarginAtThreshold);

using Is = Condition::Is;

EvidenceRule MakeRule(Rule rule, Band band, double confidence,
                      std::initializer_list<Condition> conditions) {
  EvidenceRule made{.rule = rule, .band = band, .confidence = confidence};
  for (const Condition& condition : conditions) made.conditions.at(made.count++) = condition;
  return made;
}

EvidenceRule With(EvidenceRule rule, std::initializer_list<Condition> more) {
  for (const Condition& condition : more) rule.conditions.at(rule.count++) = condition;
  return rule;
}

// The same conditions, by another name.
EvidenceRule Named(EvidenceRule rule, Rule name, Band band, double confidence) {
  rule.rule = name;
  rule.band = band;
  rule.confidence = confidence;
  return rule;
}

// Steadiness only adds to what a rule says without it.
bool LowersConfidence(const Condition& condition, const Features& features) {
  return condition.is != Is::kNotMeasured && condition.feature != Feature::kIpcSpread &&
         features.Value(condition.feature);
}

// How many times a feature is its threshold, or the threshold the feature: 1 or more.
double Distance(const Condition& condition, const Features& features) {
  const double feature = *features.Value(condition.feature);
  return feature < condition.threshold ? condition.threshold / feature
                                       : feature / condition.threshold;
}

}  // namespace

std::optional<bool> Condition::Holds(const Features& features) const {
  const std::optional<double> value = features.Value(feature);
  if (is == Is::kNotMeasured) return !value.has_value();
  if (!value && is == Is::kBelowIfMeasured) return true;
  if (!value) return std::nullopt;
  if (is == Is::kBelow || is == Is::kBelowIfMeasured) return *value < threshold;
  return is == Is::kAtLeast ? *value >= threshold : *value <= threshold;
}

Outcome Try(const EvidenceRule& rule, const Features& features) {
  Outcome outcome = Outcome::kHolds;
  for (const Condition& condition : rule.Conditions()) {
    const std::optional<bool> holds = condition.Holds(features);
    if (!holds) return Outcome::kSkipped;
    if (!*holds) outcome = Outcome::kFails;
  }
  return outcome;
}

EvidenceRules::EvidenceRules(const EvidenceThresholds& t) : thresholds_(t) {
  const Condition few_branch_misses{Feature::kBranchMisses, Is::kBelow, t.loop_branch_misses_below};
  const Condition few_cache_misses{Feature::kCacheMisses, Is::kBelowIfMeasured,
                                   t.loop_cache_misses_below};
  const Condition few_l1d_misses{Feature::kL1dMisses, Is::kBelowIfMeasured,
                                 t.loop_l1d_misses_below};
  const Condition no_cache_event{Feature::kCacheMisses, Is::kNotMeasured};
  const Condition no_l1d_event{Feature::kL1dMisses, Is::kNotMeasured};
  const Condition no_pause_event{Feature::kPauseShare, Is::kNotMeasured};
  const Condition no_pause{Feature::kPauseShare, Is::kBelow, t.no_pause_below};
  const Condition many_branches{Feature::kBranchShare, Is::kAtLeast, t.loop_branch_share_from};
  const Condition fast{Feature::kIpc, Is::kAtLeast, t.loop_ipc_from};
  const Condition slow{Feature::kIpc, Is::kBelow, t.loop_ipc_from};
  const Condition poll{Feature::kIpc, Is::kAtLeast, t.poll_ipc_from};
  const Condition no_poll{Feature::kIpc, Is::kBelow, t.poll_ipc_from};
  const EvidenceRule tight =
      MakeRule(Rule::kTightLoop, Band::kSpinning, kByLoop,
               {few_branch_misses, many_branches, few_cache_misses, few_l1d_misses});
  const EvidenceRule bare =
      MakeRule(Rule::kBareLoop, Band::kSpinning, kByBareLoop,
               {{Feature::kBranchMisses, Is::kBelow, t.bare_loop_branch_misses_below},
                many_branches,
                no_cache_event,
                no_l1d_event});

  Add(MakeRule(Rule::kShort, Band::kUnknown, kNone,
               {{Feature::kCycles, Is::kBelow, t.fewest_cycles}}));
  Add(MakeRule(Rule::kPause, Band::kSpinning, kByPause,
               {{Feature::kPauseShare, Is::kAtLeast, t.pause_spin_from}}));
  Add(MakeRule(Rule::kMixed, Band::kUnknown, kNone,
               {{Feature::kPauseShare, Is::kAtLeast, t.pause_mixed_from}}));
  Add(With(Named(tight, Rule::kSlowChain, Band::kProductive, kByLoop), {slow, no_pause}));
  for (const EvidenceRule& loop : {bare, tight}) {
    const bool is_bare = loop.rule == Rule::kBareLoop;
    for (const IpcRange& range : t.SpinIpcs()) {
      const EvidenceRule known =
          is_bare ? loop : Named(loop, Rule::kSpinIpc, Band::kSpinning, kBySpinIpc);
      Add(With(known, {{Feature::kIpc, Is::kAtLeast, range.from},
                       {Feature::kIpc, Is::kAtMost, range.to},
                       no_pause_event}));
    }
    Add(With(loop, {fast, no_poll}));
    if (t.spin_ipcs == 0) Add(With(loop, {slow, no_pause_event}));
    if (!is_bare) continue;
    // Work in a cache looks like this too, and would show in its misses: no rule below may speak.
    Add(MakeRule(Rule::kUnclear, Band::kUnknown, kNone,
                 {few_branch_misses, many_branches, no_cache_event, no_l1d_event}));
  }
  const EvidenceRule polling =
      With(Named(tight, Rule::kPollLike, Band::kSpinning, kByLoop), {poll});
  Add(With(Named(polling, Rule::kPollLike, Band::kSpinning, kBySteadyLoop),
           {{Feature::kIpcSpread, Is::kBelow, t.steady_ipc_spread_below}}));
  Add(polling);

  const EvidenceRule slow_loop =
      MakeRule(Rule::kSlowLoop, Band::kSpinning, kByLoop,
               {{Feature::kBranchShare, Is::kNotMeasured},
                no_pause_event,
                {Feature::kBranchMisses, Is::kBelow, t.slow_loop_branch_misses_below},
                {Feature::kCacheMisses, Is::kBelow, t.loop_cache_misses_below},
                few_l1d_misses});
  for (const IpcRange& range : t.SpinIpcs()) {
    Add(With(slow_loop,
             {{Feature::kIpc, Is::kAtLeast, range.from}, {Feature::kIpc, Is::kAtMost, range.to}}));
  }
  if (t.spin_ipcs == 0) {
    Add(With(slow_loop, {{Feature::kIpc, Is::kBelow, t.slow_loop_ipc_below}}));
  }

  if (t.memory_bound_cache_misses_from) {
    Add(MakeRule(Rule::kMemoryBound, Band::kProductive, kByMisses,
                 {{Feature::kIpc, Is::kBelow, t.memory_bound_ipc_below},
                  {Feature::kCacheMisses, Is::kAtLeast, *t.memory_bound_cache_misses_from}}));
  }
  Add(MakeRule(Rule::kIpcHigh, Band::kProductive, kByProgress,
               {{Feature::kIpc, Is::kAtLeast, t.productive_ipc_from}}));
  Add(MakeRule(Rule::kBranchMisses, Band::kProductive, kByProgress,
               {{Feature::kBranchMisses, Is::kAtLeast, t.productive_branch_misses_from}}));
  const EvidenceRule l1d =
      MakeRule(Rule::kL1dMisses, Band::kProductive, kByL1dMisses,
               {{Feature::kL1dMisses, Is::kAtLeast, t.productive_l1d_misses_from}});
  Add(With(l1d, {{Feature::kIpc, Is::kAtLeast, t.productive_l1d_ipc_from}}));
  Add(With(l1d, {no_pause}));
}

Judgement EvidenceRules::Judge(const Features& features, size_t* fired) const {
  const auto holds = [&features](const Condition& condition) {
    return condition.Holds(features).value_or(false);
  };
  const auto rule = std::ranges::find_if(rules_, [&](const EvidenceRule& candidate) {
    return std::ranges::all_of(candidate.Conditions(), holds);
  });
  if (fired != nullptr) *fired = static_cast<size_t>(rule - rules_.begin());
  if (rule == rules_.end()) {
    return {Band::kUnknown, features.instructions_counted ? Rule::kUnclear : Rule::kNoInstructions,
            0};
  }
  if (rule->band == Band::kUnknown) return {rule->band, rule->rule, 0};
  const double confidence = Confidence(*rule, features);
  if (confidence < thresholds_.weak_below) return {Band::kUnknown, Rule::kWeak, confidence};
  return {rule->band, rule->rule, confidence};
}

double EvidenceRules::Confidence(const EvidenceRule& rule, const Features& features) const {
  double nearest = std::numeric_limits<double>::infinity();
  for (const Condition& condition : rule.Conditions()) {
    if (LowersConfidence(condition, features)) {
      nearest = std::min(nearest, Distance(condition, features));
    }
  }
  // The margin grows with the distance: the nearest threshold gives the smallest one.
  const double margin = nearest < kFullMarginFrom ? kMarginAtThreshold + std::log(nearest) : 1;
  const double cycles = features.Value(Feature::kCycles).value_or(0);
  return rule.confidence * std::sqrt(features.running_share) * margin *
         std::min(1.0, cycles / thresholds_.full_confidence_cycles);
}

}  // namespace vcpulse::core

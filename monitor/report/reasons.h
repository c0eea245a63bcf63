#pragma once

// Why one window of one vCPU was judged as it was: the comparisons that the classifiers make
// (monitor/core), one by one, for people. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/core/classify.h"
#include "monitor/core/evidence.h"
#include "monitor/core/features.h"
#include "monitor/core/presence.h"
#include "monitor/core/profile.h"

namespace vcpulse::report {

// One comparison.
struct Comparison {
  enum class Is : uint8_t { kBelow, kAtLeast, kAtMost, kAbove, kFact };

  // For programs: reading::FeatureName(), or "enabled_share", "counted_share", "residency",
  // "residency_at_most", "enabled_over_residency", "waiting_share", "state".
  std::string_view feature{};
  std::string what;               // "IPC"; of a fact all of it: "thread state: blocked"
  std::optional<double> value{};  // nothing: not measured
  Is is = Is::kFact;
  double threshold = 0;
  bool is_share = false;        // value and threshold are shares
  std::optional<bool> holds{};  // nothing where it was not measured, and of a fact
};

std::optional<std::string_view> Sign(Comparison::Is is);  // "<", ">="; nothing for a fact
std::string_view OutcomeName(core::Outcome outcome);      // "holds", "fails", "skipped"

// One rule as it was tried.
struct RuleTrial {
  core::Rule rule = core::Rule::kNone;
  core::Band band = core::Band::kNone;
  core::Outcome outcome = core::Outcome::kFails;
  std::optional<double> confidence{};  // where it holds and gives one
  std::vector<Comparison> conditions{};
};

struct Reasons {
  core::Judgement raw;  // of this window alone
  // Whether the vCPU ran and was counted, as far as that had to be asked.
  std::vector<Comparison> presence;
  bool decided_by_presence = false;
  // Else the rules, in order; their conditions are all there, whichever decided.
  std::vector<RuleTrial> rules;
  std::optional<size_t> fired;       // the first that holds
  std::optional<size_t> runner_up;   // the next that holds too, else the one that came nearest
  std::optional<double> weak_below;  // where `fired` was not sure enough to be believed
};

// Of a window with these features, judged by `classifier`; `previous` is the vCPU's band before.
// `raw` is what core::JudgePresence and the classifier say of the same.
Reasons FindReasons(const core::Features& features, const core::Profile& profile,
                    core::Classifier classifier, core::Band previous);

}  // namespace vcpulse::report

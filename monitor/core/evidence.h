#pragma once

// The evidence classifier: rules over features, in order. The first rule whose conditions all hold
// gives the band; a rule of whose features one was not measured is skipped. docs/bands.md says
// where the rules and numbers come from.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "monitor/core/features.h"
#include "monitor/core/presence.h"
#include "monitor/core/profile.h"

namespace vcpulse::core {

// One comparison of a rule.
struct Condition {
  // kBelowIfMeasured holds, too, where it was not measured.
  enum class Is : uint8_t { kBelow, kAtLeast, kAtMost, kNotMeasured, kBelowIfMeasured };

  Feature feature = Feature::kCycles;
  Is is = Is::kBelow;
  double threshold = 0;

  // Nothing where the feature was not measured and the condition needs it.
  std::optional<bool> Holds(const Features& features) const;
};

struct EvidenceRule {
  static constexpr size_t kMostConditions = 8;

  Rule rule = Rule::kNone;
  Band band = Band::kNone;
  double confidence = 0;  // before what lowers it; 0: none is given
  std::array<Condition, kMostConditions> conditions{};
  size_t count = 0;

  std::span<const Condition> Conditions() const { return std::span(conditions).first(count); }
};

// Whether a rule speaks.
enum class Outcome : uint8_t { kHolds, kFails, kSkipped };
Outcome Try(const EvidenceRule& rule, const Features& features);

// The rules of one profile. Immutable; takes its memory when it is made. Rules, with the default
// numbers (u_b, u_m, u_l: misses of branches, caches and the L1D per kilo-cycle, b: branches per
// instruction, p: share of cycles in PAUSE):
//   short          UNKNOWN     cycles < 1e6
//   pause          SPINNING    p >= 0.30
//   mixed          UNKNOWN     p >= 0.10
//   slow-chain     PRODUCTIVE  tight loop, IPC < 0.50, p < 0.01
//   bare-loop      SPINNING    tight loop with u_b < 0.05 that spin-ipc or tight-loop would call
//   one
//                              if u_m or u_l were measured
//   unclear        UNKNOWN     tight loop, neither u_m nor u_l measured
//   spin-ipc       SPINNING    p not measured, tight loop, IPC in a range of SpinIpcs()
//   tight-loop     SPINNING    tight loop, 0.50 <= IPC < 1
//   tight-loop     SPINNING    tight loop, IPC < 0.50: where neither p nor any spin IPC is known
//   poll-like      SPINNING    tight loop, IPC >= 1 (steady ones are surer)
//   slow-loop      SPINNING    b and p not measured, u_b < 0.05, u_m < 0.10, u_l < 0.50, IPC in a
//                              range of SpinIpcs(), or below 0.35 where none is known
//   memory-bound   PRODUCTIVE  IPC < 0.75, u_m >= 0.5; not where that count is no evidence
//   ipc-high       PRODUCTIVE  IPC >= 1
//   branch-misses  PRODUCTIVE  u_b >= 0.20
//   l1d-misses     PRODUCTIVE  u_l >= 1, and IPC >= 0.20 or p < 0.01
//   unclear        UNKNOWN     else
// where a tight loop is u_b < 0.10, b >= 0.10, and of u_m < 0.10 and u_l < 0.50 what is measured.
class EvidenceRules {
 public:
  explicit EvidenceRules(const EvidenceThresholds& thresholds);

  std::span<const EvidenceRule> rules() const { return rules_; }
  const EvidenceThresholds& thresholds() const { return thresholds_; }

  // Of a window that JudgePresence leaves open. `fired`, where given, becomes the index of the rule
  // that spoke, before the cut; rules().size() for `unclear`. Thread-safe, allocates nothing.
  Judgement Judge(const Features& features, size_t* fired = nullptr) const;

  // The confidence of a verdict by this rule: its own x sqrt(q) x the smallest margin of its
  // conditions x min(1, cycles / full_confidence_cycles), where the margin of a feature is
  // min(1, 0.6 + |ln(feature / threshold)|), and 1 for the spread of IPCs.
  double Confidence(const EvidenceRule& rule, const Features& features) const;

 private:
  void Add(const EvidenceRule& rule) { rules_.push_back(rule); }

  EvidenceThresholds thresholds_;
  std::vector<EvidenceRule> rules_;
};

}  // namespace vcpulse::core

#pragma once

// From numbers to outcomes: comparisons of intervals, and whether there is enough to judge by.
// Pure.

#include <cstdint>
#include <optional>

#include "monitor/check/expression.h"
#include "monitor/check/result.h"

namespace vcpulse::check {

// Whether `value` satisfies the comparison with `limit`.
bool Satisfies(double value, Comparison comparison, double limit);

// Whether the comparison sets an upper limit, so that high values are on the wrong side.
bool IsUpperLimit(Comparison comparison);

// kPass where all of [low, high] satisfies, kFail where none of it does, else kInconclusive.
Outcome JudgeBounds(const Bounds& bounds, Comparison comparison, double limit);

// How much there is to judge by.
struct Support {
  uint64_t ticks = 0;       // measured
  int64_t judged_ns = 0;    // wall time to be judged
  int64_t measured_ns = 0;  // thereof in these ticks
};

// Why an outcome is what it is.
enum class Why : uint8_t {
  kBounds,          // what was observed, held against the limit
  kNoCounters,      // the quantity needs them, and none was read
  kNothingToJudge,  // no time
  kTooFewTicks,
  kTooLittleMeasured,
  kNothingObserved,  // ticks, but none that tells of the quantity
};

struct Decision {
  Outcome outcome = Outcome::kInconclusive;
  Why why = Why::kBounds;

  bool operator==(const Decision&) const = default;
};

// What is asked of a subject, and what is enough to answer.
struct Question {
  Quantity quantity;
  Comparison comparison = Comparison::kAtMost;
  double limit = 0;
  uint64_t min_ticks = 0;
  double min_measured = 0;  // share of the judged time
};

// The outcome for one subject; `degraded`: in all of the time no hardware counter was read. Gaps
// are what is not measured: little of it is no excuse for them, but few ticks are no proof either
// that there are none.
Decision Decide(const Question& question, const std::optional<Bounds>& observed,
                const Support& support, bool degraded);

}  // namespace vcpulse::check

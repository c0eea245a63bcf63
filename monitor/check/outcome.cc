#include "monitor/check/outcome.h"

#include <algorithm>

namespace vcpulse::check {

std::string_view ToString(Outcome outcome) {
  switch (outcome) {
    case Outcome::kSkip:
      return "SKIP";
    case Outcome::kPass:
      return "PASS";
    case Outcome::kInconclusive:
      return "INCONCLUSIVE";
    case Outcome::kFail:
      return "FAIL";
  }
  return "-";
}

Outcome Worst(std::span<const Outcome> outcomes, bool allow_skip) {
  const bool has_skip = std::ranges::find(outcomes, Outcome::kSkip) != outcomes.end();
  const Outcome worst = outcomes.empty() ? Outcome::kSkip : *std::ranges::max_element(outcomes);
  return worst == Outcome::kPass && has_skip && !allow_skip ? Outcome::kSkip : worst;
}

bool Satisfies(double value, Comparison comparison, double limit) {
  switch (comparison) {
    case Comparison::kBelow:
      return value < limit;
    case Comparison::kAtMost:
      return value <= limit;
    case Comparison::kAtLeast:
      return value >= limit;
    case Comparison::kAbove:
      return value > limit;
    case Comparison::kEqual:
      return value == limit;
  }
  return false;
}

bool IsUpperLimit(Comparison comparison) {
  return comparison == Comparison::kBelow || comparison == Comparison::kAtMost;
}

Outcome JudgeBounds(const Bounds& bounds, Comparison comparison, const Bounds& limit) {
  // The ends that are furthest apart speak for all between them.
  const bool low = Satisfies(bounds.low, comparison, limit.high);
  const bool high = Satisfies(bounds.high, comparison, limit.low);
  if (comparison == Comparison::kEqual && !(low && high)) {
    const bool meet = bounds.low <= limit.high && limit.low <= bounds.high;
    return meet ? Outcome::kInconclusive : Outcome::kFail;
  }
  if (low && high) return Outcome::kPass;
  return low || high ? Outcome::kInconclusive : Outcome::kFail;
}

Decision Decide(const Question& question, const std::optional<Bounds>& observed,
                const Support& support, bool degraded) {
  if (degraded && question.quantity.NeedsCounters()) return {Outcome::kSkip, Why::kNoCounters};
  if (support.judged_ns <= 0) return {Outcome::kInconclusive, Why::kNothingToJudge};
  const Outcome by_bounds = observed && question.limit
                                ? JudgeBounds(*observed, question.comparison, *question.limit)
                                : Outcome::kInconclusive;
  const bool about_gaps = question.quantity.kind == Quantity::Kind::kGaps;
  if (about_gaps && by_bounds == Outcome::kFail) return {by_bounds, Why::kBounds};
  if (support.ticks < question.min_ticks) return {Outcome::kInconclusive, Why::kTooFewTicks};
  const double measured =
      static_cast<double>(support.measured_ns) / static_cast<double>(support.judged_ns);
  if (!about_gaps && measured < question.min_measured) {
    return {Outcome::kInconclusive, Why::kTooLittleMeasured};
  }
  const bool about_windows = question.quantity.kind == Quantity::Kind::kHot;
  if (!observed && about_windows) return {Outcome::kSkip, Why::kNotSampled};
  if (!observed) return {Outcome::kInconclusive, Why::kNothingObserved};
  if (!question.limit) return {Outcome::kInconclusive, Why::kNoLimit};
  return {by_bounds, Why::kBounds};
}

}  // namespace vcpulse::check

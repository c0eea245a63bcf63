#include "monitor/check/outcome.h"

#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace vcpulse::check {
namespace {

constexpr auto kBoundsPass = Outcome::kPass;
constexpr auto kBoundsFail = Outcome::kFail;
constexpr auto kBoundsInconclusive = Outcome::kInconclusive;
constexpr auto kBoundsSkip = Outcome::kSkip;

TEST(Worst, FailBeforeInconclusiveBeforeSkipBeforePass) {
  using Outcomes = std::vector<Outcome>;
  EXPECT_EQ(Worst(Outcomes{kBoundsFail, kBoundsInconclusive}), kBoundsFail);
  EXPECT_EQ(Worst(Outcomes{kBoundsInconclusive, kBoundsFail}), kBoundsFail);
  EXPECT_EQ(Worst(Outcomes{kBoundsPass, kBoundsInconclusive, kBoundsSkip}), kBoundsInconclusive);
  EXPECT_EQ(Worst(Outcomes{kBoundsSkip, kBoundsPass}), kBoundsSkip);
  EXPECT_EQ(Worst(Outcomes{kBoundsPass, kBoundsPass}), kBoundsPass);
  EXPECT_EQ(Worst(Outcomes{}), kBoundsSkip);
}

TEST(Worst, WhereSkipsAreAllowedAPassIsOne) {
  using Outcomes = std::vector<Outcome>;
  EXPECT_EQ(Worst(Outcomes{kBoundsSkip, kBoundsPass}, true), kBoundsPass);
  EXPECT_EQ(Worst(Outcomes{kBoundsSkip, kBoundsSkip}, true), kBoundsSkip);
  EXPECT_EQ(Worst(Outcomes{kBoundsSkip, kBoundsInconclusive}, true), kBoundsInconclusive);
}

TEST(Outcome, HasAName) {
  EXPECT_EQ(ToString(kBoundsSkip), "SKIP");
  EXPECT_EQ(ToString(kBoundsPass), "PASS");
  EXPECT_EQ(ToString(kBoundsInconclusive), "INCONCLUSIVE");
  EXPECT_EQ(ToString(kBoundsFail), "FAIL");
}

TEST(JudgeBounds, HoldsBothEndsAgainstTheLimit) {
  struct Row {
    Bounds bounds;
    Outcome below;  // 0.5
    Outcome at_most;
    Outcome at_least;
    Outcome above;
  };
  for (const Row& row : {
           Row{{0.3, 0.4}, kBoundsPass, kBoundsPass, kBoundsFail, kBoundsFail},
           Row{{0.3, 0.5}, kBoundsInconclusive, kBoundsPass, kBoundsInconclusive, kBoundsFail},
           Row{{0.5, 0.5}, kBoundsFail, kBoundsPass, kBoundsPass, kBoundsFail},
           Row{{0.3, 0.6},
               kBoundsInconclusive,
               kBoundsInconclusive,
               kBoundsInconclusive,
               kBoundsInconclusive},
           Row{{0.5, 0.6}, kBoundsFail, kBoundsInconclusive, kBoundsPass, kBoundsInconclusive},
           Row{{0.6, 0.7}, kBoundsFail, kBoundsFail, kBoundsPass, kBoundsPass},
       }) {
    SCOPED_TRACE(row.bounds.low);
    EXPECT_EQ(JudgeBounds(row.bounds, Comparison::kBelow, {0.5, 0.5}), row.below);
    EXPECT_EQ(JudgeBounds(row.bounds, Comparison::kAtMost, {0.5, 0.5}), row.at_most);
    EXPECT_EQ(JudgeBounds(row.bounds, Comparison::kAtLeast, {0.5, 0.5}), row.at_least);
    EXPECT_EQ(JudgeBounds(row.bounds, Comparison::kAbove, {0.5, 0.5}), row.above);
  }
}

TEST(JudgeBounds, OfALimitThatIsARangeTheEndsFurthestApartCount) {
  const Bounds limit{0.4, 0.6};
  EXPECT_EQ(JudgeBounds({0.1, 0.4}, Comparison::kAtMost, limit), kBoundsPass);
  EXPECT_EQ(JudgeBounds({0.1, 0.5}, Comparison::kAtMost, limit), kBoundsInconclusive);
  EXPECT_EQ(JudgeBounds({0.6, 0.7}, Comparison::kAtMost, limit), kBoundsInconclusive);
  EXPECT_EQ(JudgeBounds({0.7, 0.8}, Comparison::kAtMost, limit), kBoundsFail);
  EXPECT_EQ(JudgeBounds({0.6, 0.7}, Comparison::kAtLeast, limit), kBoundsPass);
  EXPECT_EQ(JudgeBounds({0.5, 0.7}, Comparison::kAtLeast, limit), kBoundsInconclusive);
  EXPECT_EQ(JudgeBounds({0.1, 0.4}, Comparison::kAtLeast, limit), kBoundsInconclusive);
  EXPECT_EQ(JudgeBounds({0.1, 0.3}, Comparison::kAtLeast, limit), kBoundsFail);
}

TEST(JudgeBounds, EqualIsSureOnlyWithoutARange) {
  const Bounds half{0.5, 0.5};
  EXPECT_EQ(JudgeBounds(half, Comparison::kEqual, half), kBoundsPass);
  EXPECT_EQ(JudgeBounds({0.4, 0.5}, Comparison::kEqual, half), kBoundsInconclusive);
  EXPECT_EQ(JudgeBounds({0.4, 0.6}, Comparison::kEqual, half), kBoundsInconclusive);
  EXPECT_EQ(JudgeBounds(half, Comparison::kEqual, {0.4, 0.5}), kBoundsInconclusive);
  EXPECT_EQ(JudgeBounds({0.6, 0.7}, Comparison::kEqual, half), kBoundsFail);
  EXPECT_EQ(JudgeBounds({0.3, 0.4}, Comparison::kEqual, half), kBoundsFail);
}

TEST(IsUpperLimit, IsSoWhereHighValuesAreWrong) {
  EXPECT_TRUE(IsUpperLimit(Comparison::kBelow));
  EXPECT_TRUE(IsUpperLimit(Comparison::kAtMost));
  EXPECT_FALSE(IsUpperLimit(Comparison::kAtLeast));
  EXPECT_FALSE(IsUpperLimit(Comparison::kAbove));
}

TEST(Comparison, OfNoKnownKindIsNeverSatisfied) {
  EXPECT_FALSE(Satisfies(1, static_cast<Comparison>(9), 1));
}

// Enough to judge by: 100 of 1000 ns in 10 ticks.
const Question kQuestion{.quantity = {.metric = Metric::kSpinning},
                         .comparison = Comparison::kAtMost,
                         .limit = Bounds{0.5, 0.5},
                         .min_ticks = 10,
                         .min_measured = 0.1};
const Support kSupport{.ticks = 10, .judged_ns = 1000, .measured_ns = 100};
const std::optional<Bounds> kGood = Bounds{0.1, 0.2};
const std::optional<Bounds> kBad = Bounds{0.6, 0.7};

TEST(Decide, GoesByTheBoundsWhereThereIsEnough) {
  EXPECT_EQ(Decide(kQuestion, kGood, kSupport, false), (Decision{kBoundsPass, Why::kBounds}));
  EXPECT_EQ(Decide(kQuestion, kBad, kSupport, false), (Decision{kBoundsFail, Why::kBounds}));
  EXPECT_EQ(Decide(kQuestion, Bounds{0.1, 0.7}, kSupport, false),
            (Decision{kBoundsInconclusive, Why::kBounds}));
  Question without_limit = kQuestion;
  without_limit.limit.reset();
  EXPECT_EQ(Decide(without_limit, kGood, kSupport, false),
            (Decision{kBoundsInconclusive, Why::kNoLimit}));
  EXPECT_EQ(Decide(kQuestion, std::nullopt, kSupport, false),
            (Decision{kBoundsInconclusive, Why::kNothingObserved}));
}

TEST(Decide, NeedsTicksAndTimeWhateverTheBounds) {
  for (const auto& bounds : {kGood, kBad}) {
    Support few = kSupport;
    few.ticks = 9;
    EXPECT_EQ(Decide(kQuestion, bounds, few, false),
              (Decision{kBoundsInconclusive, Why::kTooFewTicks}));
    Support little = kSupport;
    little.measured_ns = 99;
    EXPECT_EQ(Decide(kQuestion, bounds, little, false),
              (Decision{kBoundsInconclusive, Why::kTooLittleMeasured}));
    EXPECT_EQ(Decide(kQuestion, bounds, {.ticks = 10, .judged_ns = 0, .measured_ns = 0}, false),
              (Decision{kBoundsInconclusive, Why::kNothingToJudge}));
  }
  EXPECT_EQ(Decide(kQuestion, kGood, {.ticks = 10, .judged_ns = 1, .measured_ns = 1}, false),
            (Decision{kBoundsPass, Why::kBounds}));
}

TEST(Decide, GapsMayFailWithFewTicksButNotPass) {
  Question gaps = kQuestion;
  gaps.quantity = kGaps;
  const Support few{.ticks = 2, .judged_ns = 1000, .measured_ns = 1};
  EXPECT_EQ(Decide(gaps, kBad, few, false), (Decision{kBoundsFail, Why::kBounds}));
  EXPECT_EQ(Decide(gaps, kGood, few, false), (Decision{kBoundsInconclusive, Why::kTooFewTicks}));
  const Support enough{.ticks = 10, .judged_ns = 1000, .measured_ns = 1};
  EXPECT_EQ(Decide(gaps, kGood, enough, false), (Decision{kBoundsPass, Why::kBounds}));
  EXPECT_EQ(Decide(gaps, kBad, {}, false), (Decision{kBoundsInconclusive, Why::kNothingToJudge}));
}

TEST(Decide, SkipsWhatNeedsCountersWithoutThem) {
  const auto decide = [](Metric metric, bool longest) {
    Question question = kQuestion;
    question.quantity = {.kind = longest ? Quantity::Kind::kLongest : Quantity::Kind::kMean,
                         .metric = metric};
    return Decide(question, kGood, kSupport, true);
  };
  const Decision skipped{kBoundsSkip, Why::kNoCounters};
  for (const Metric metric : {Metric::kSpinning, Metric::kProductive, Metric::kUnknown,
                              Metric::kResidency, Metric::kIpc}) {
    EXPECT_EQ(decide(metric, false), skipped);
    EXPECT_EQ(decide(metric, true), skipped);
  }
  for (const Metric metric : {Metric::kHalted, Metric::kStarved}) {
    EXPECT_EQ(decide(metric, false), (Decision{kBoundsPass, Why::kBounds}));
    EXPECT_EQ(decide(metric, true), (Decision{kBoundsPass, Why::kBounds}));
  }
  Question gaps = kQuestion;
  gaps.quantity = kGaps;
  EXPECT_EQ(Decide(gaps, kGood, kSupport, true), (Decision{kBoundsPass, Why::kBounds}));
  EXPECT_EQ(Decide(kQuestion, kGood, {}, true), skipped);
}

}  // namespace
}  // namespace vcpulse::check

#include "monitor/check/outcome.h"

#include <optional>

#include "gtest/gtest.h"

namespace vcpulse::check {
namespace {

constexpr auto kPass = Outcome::kPass;
constexpr auto kFail = Outcome::kFail;
constexpr auto kInconclusive = Outcome::kInconclusive;
constexpr auto kSkip = Outcome::kSkip;

TEST(Worst, FailBeforeInconclusiveBeforePassBeforeSkip) {
  EXPECT_EQ(Worst(kFail, kInconclusive), kFail);
  EXPECT_EQ(Worst(kInconclusive, kFail), kFail);
  EXPECT_EQ(Worst(kPass, kInconclusive), kInconclusive);
  EXPECT_EQ(Worst(kSkip, kPass), kPass);
  EXPECT_EQ(Worst(kSkip, kSkip), kSkip);
}

TEST(Outcome, HasAName) {
  EXPECT_EQ(ToString(kSkip), "SKIP");
  EXPECT_EQ(ToString(kPass), "PASS");
  EXPECT_EQ(ToString(kInconclusive), "INCONCLUSIVE");
  EXPECT_EQ(ToString(kFail), "FAIL");
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
           Row{{0.3, 0.4}, kPass, kPass, kFail, kFail},
           Row{{0.3, 0.5}, kInconclusive, kPass, kInconclusive, kFail},
           Row{{0.5, 0.5}, kFail, kPass, kPass, kFail},
           Row{{0.3, 0.6}, kInconclusive, kInconclusive, kInconclusive, kInconclusive},
           Row{{0.5, 0.6}, kFail, kInconclusive, kPass, kInconclusive},
           Row{{0.6, 0.7}, kFail, kFail, kPass, kPass},
       }) {
    SCOPED_TRACE(row.bounds.low);
    EXPECT_EQ(JudgeBounds(row.bounds, Comparison::kBelow, 0.5), row.below);
    EXPECT_EQ(JudgeBounds(row.bounds, Comparison::kAtMost, 0.5), row.at_most);
    EXPECT_EQ(JudgeBounds(row.bounds, Comparison::kAtLeast, 0.5), row.at_least);
    EXPECT_EQ(JudgeBounds(row.bounds, Comparison::kAbove, 0.5), row.above);
  }
}

TEST(IsUpperLimit, IsSoWhereHighValuesAreWrong) {
  EXPECT_TRUE(IsUpperLimit(Comparison::kBelow));
  EXPECT_TRUE(IsUpperLimit(Comparison::kAtMost));
  EXPECT_FALSE(IsUpperLimit(Comparison::kAtLeast));
  EXPECT_FALSE(IsUpperLimit(Comparison::kAbove));
}

TEST(Comparison, OfNoKnownKindIsNeverSatisfied) {
  EXPECT_FALSE(Satisfies(1, static_cast<Comparison>(9), 1));
  EXPECT_TRUE(NeedsCounters({.metric = static_cast<Metric>(99)}));
}

// Enough to judge by: 100 of 1000 ns in 10 ticks.
const Question kQuestion{.quantity = {.metric = Metric::kSpinning},
                         .comparison = Comparison::kAtMost,
                         .limit = 0.5,
                         .min_ticks = 10,
                         .min_measured = 0.1};
const Support kSupport{.ticks = 10, .judged_ns = 1000, .measured_ns = 100};
const std::optional<Bounds> kGood = Bounds{0.1, 0.2};
const std::optional<Bounds> kBad = Bounds{0.6, 0.7};

TEST(Decide, GoesByTheBoundsWhereThereIsEnough) {
  EXPECT_EQ(Decide(kQuestion, kGood, kSupport, false), (Decision{kPass, Why::kBounds}));
  EXPECT_EQ(Decide(kQuestion, kBad, kSupport, false), (Decision{kFail, Why::kBounds}));
  EXPECT_EQ(Decide(kQuestion, Bounds{0.1, 0.7}, kSupport, false),
            (Decision{kInconclusive, Why::kBounds}));
  EXPECT_EQ(Decide(kQuestion, std::nullopt, kSupport, false),
            (Decision{kInconclusive, Why::kNothingObserved}));
}

TEST(Decide, NeedsTicksAndTimeWhateverTheBounds) {
  for (const auto& bounds : {kGood, kBad}) {
    Support few = kSupport;
    few.ticks = 9;
    EXPECT_EQ(Decide(kQuestion, bounds, few, false), (Decision{kInconclusive, Why::kTooFewTicks}));
    Support little = kSupport;
    little.measured_ns = 99;
    EXPECT_EQ(Decide(kQuestion, bounds, little, false),
              (Decision{kInconclusive, Why::kTooLittleMeasured}));
    EXPECT_EQ(Decide(kQuestion, bounds, {.ticks = 10, .judged_ns = 0, .measured_ns = 0}, false),
              (Decision{kInconclusive, Why::kNothingToJudge}));
  }
  EXPECT_EQ(Decide(kQuestion, kGood, {.ticks = 10, .judged_ns = 1, .measured_ns = 1}, false),
            (Decision{kPass, Why::kBounds}));
}

TEST(Decide, GapsMayFailWithFewTicksButNotPass) {
  Question gaps = kQuestion;
  gaps.quantity.metric = Metric::kGaps;
  const Support few{.ticks = 2, .judged_ns = 1000, .measured_ns = 1};
  EXPECT_EQ(Decide(gaps, kBad, few, false), (Decision{kFail, Why::kBounds}));
  EXPECT_EQ(Decide(gaps, kGood, few, false), (Decision{kInconclusive, Why::kTooFewTicks}));
  const Support enough{.ticks = 10, .judged_ns = 1000, .measured_ns = 1};
  EXPECT_EQ(Decide(gaps, kGood, enough, false), (Decision{kPass, Why::kBounds}));
  EXPECT_EQ(Decide(gaps, kBad, {}, false), (Decision{kInconclusive, Why::kNothingToJudge}));
}

TEST(Decide, SkipsWhatNeedsCountersWithoutThem) {
  const auto decide = [](Metric metric, bool longest) {
    Question question = kQuestion;
    question.quantity = {.metric = metric, .longest = longest};
    return Decide(question, kGood, kSupport, true);
  };
  const Decision skipped{kSkip, Why::kNoCounters};
  for (const Metric metric : {Metric::kSpinning, Metric::kProductive, Metric::kUnknown,
                              Metric::kResidency, Metric::kIpc}) {
    EXPECT_EQ(decide(metric, false), skipped);
    EXPECT_EQ(decide(metric, true), skipped);
  }
  for (const Metric metric : {Metric::kHalted, Metric::kStarved, Metric::kGaps}) {
    EXPECT_EQ(decide(metric, false), (Decision{kPass, Why::kBounds}));
    EXPECT_EQ(decide(metric, true), (Decision{kPass, Why::kBounds}));
  }
  EXPECT_EQ(Decide(kQuestion, kGood, {}, true), skipped);
}

}  // namespace
}  // namespace vcpulse::check

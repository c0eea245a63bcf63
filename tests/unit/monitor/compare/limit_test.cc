// Limits of --fail-if, and what is said of many comparisons.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/compare/comparison.h"
#include "monitor/compare/judging.h"

namespace vcpulse::compare {
namespace {

using check::Outcome;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Limit, SharesArePointsOrRelative) {
  const auto points = ParseLimit("  spinning > +5pt ");
  ASSERT_TRUE(points.ok()) << points.status();
  EXPECT_EQ(
      *points,
      (Limit{
          .text = "spinning > +5pt", .metric = Metric::kSpinning, .above = true, .value = 0.05}));
  const auto relative = ParseLimit("productive<=-10%");
  ASSERT_TRUE(relative.ok()) << relative.status();
  EXPECT_EQ(relative->metric, Metric::kProductive);
  EXPECT_TRUE(relative->or_equal);
  EXPECT_FALSE(relative->above);
  EXPECT_TRUE(relative->relative);
  EXPECT_DOUBLE_EQ(relative->value, -0.1);
  const auto ipc = ParseLimit("ipc < -0.25");
  ASSERT_TRUE(ipc.ok()) << ipc.status();
  EXPECT_DOUBLE_EQ(ipc->value, -0.25);
  EXPECT_FALSE(ipc->relative);
}

TEST(Limit, Selectors) {
  const auto limit = ParseLimit("vm=\"my guest\" vcpu=0-3,7 phase=body : ipc >= +10%");
  ASSERT_TRUE(limit.ok()) << limit.status();
  EXPECT_EQ(limit->selector.vm, "my guest");
  EXPECT_EQ(limit->phase, "body");
  EXPECT_EQ(limit->selector.vcpus, (std::vector<check::IndexRange>{{0, 3}, {7, 7}}));
  const auto any = ParseLimit("vm=* vcpu=* phase=*: halted > +0pt");
  ASSERT_TRUE(any.ok()) << any.status();
  EXPECT_EQ(any->selector, check::Selector());
  EXPECT_FALSE(any->phase);
}

TEST(Limit, WhatIsWrongIsSaidWithItsColumn) {
  const auto message = [](std::string_view text) {
    return std::string(ParseLimit(text).status().message());
  };
  EXPECT_THAT(message(""), HasSubstr("column 1: there is no limit"));
  EXPECT_THAT(message("spin > +5pt"), HasSubstr("column 1: 'spin' is none of halted"));
  EXPECT_THAT(message("gaps > +5pt"), HasSubstr("'gaps' is none of"));
  EXPECT_THAT(message("spinning +5pt"), HasSubstr("column 10: one of <"));
  EXPECT_THAT(message("spinning == +5pt"), HasSubstr("one of <"));
  EXPECT_THAT(message("spinning > 5pt"), HasSubstr("column 12: '5pt' is not a change of a share"));
  EXPECT_THAT(message("spinning > +5"), HasSubstr("with its sign"));
  EXPECT_THAT(message("ipc > +5pt"), HasSubstr("not a change of IPC"));
  EXPECT_THAT(message("ipc >"), HasSubstr("nothing is not a change"));
  EXPECT_THAT(message("ipc > +0.5 x"), HasSubstr("'+0.5 x' is not a change"));
  EXPECT_THAT(message("ipc > +inf"), HasSubstr("not a change"));
  EXPECT_THAT(message("vm=a ipc > +1%"),
              HasSubstr("column 6: 'ipc' is none of vm=, vcpu=, phase=, ':'"));
  EXPECT_THAT(message("vm=a vm=b: ipc > +1%"), HasSubstr("column 6: vm= was given before"));
  EXPECT_THAT(message("vcpu=3-1: ipc > +1%"), HasSubstr("column 6: '3-1'"));
  EXPECT_THAT(message("vm=\"a: ipc > +1%"), HasSubstr("never closed"));
  EXPECT_THAT(message("vm=: ipc > +1%"), HasSubstr("vm= needs a name, a UUID, a PID or *"));
}

TEST(Holm, AdjustsByRankAndNeverFalls) {
  const std::vector<double> chances = {0.04, 0.01, 0.03, 0.9};
  EXPECT_THAT(HolmAdjusted(chances), ElementsAre(testing::DoubleEq(0.09), testing::DoubleEq(0.04),
                                                 testing::DoubleEq(0.09), testing::DoubleEq(0.9)));
  EXPECT_TRUE(HolmAdjusted({}).empty());
}

Row RowWith(Metric metric, double a, double b, double error) {
  Row row{.vm = "web", .vcpu = 1, .metric = metric};
  row.a.value = a;
  row.b.value = b;
  row.difference = b - a;
  row.contrast = Contrast{.estimate = b - a,
                          .low = b - a - 2 * error,
                          .high = b - a + 2 * error,
                          .standard_error = error,
                          .degrees_of_freedom = 1000};
  row.chance = row.contrast->ChanceBeyond(0);
  return row;
}

TEST(Judging, VerdictsAndTheirOrder) {
  Comparison comparison;
  comparison.rows.push_back(RowWith(Metric::kHalted, 0.30, 0.305, 0.0001));   // sure, and slight
  comparison.rows.push_back(RowWith(Metric::kSpinning, 0.30, 0.40, 0.045));   // alone it would be
  comparison.rows.push_back(RowWith(Metric::kProductive, 0.30, 0.31, 0.02));  // no
  comparison.rows.push_back(RowWith(Metric::kIpc, 1.0, 0.8, 0.01));           // sure
  comparison.rows.push_back(RowWith(Metric::kStarved, 0.0, 0.9, 0.01));       // sure, and larger
  comparison.rows.push_back({.vm = "web", .metric = Metric::kUnknown});
  JudgeRows(comparison);
  std::vector<std::pair<Metric, Verdict>> found;
  for (const Row& row : comparison.rows) found.emplace_back(row.metric, row.verdict);
  EXPECT_THAT(found, ElementsAre(std::pair(Metric::kStarved, Verdict::kDiffers),
                                 std::pair(Metric::kIpc, Verdict::kDiffers),
                                 std::pair(Metric::kHalted, Verdict::kSlight),
                                 std::pair(Metric::kSpinning, Verdict::kMaybe),
                                 std::pair(Metric::kProductive, Verdict::kNotToldApart),
                                 std::pair(Metric::kUnknown, Verdict::kUntold)));
  EXPECT_EQ(comparison.tests, 5u);
}

Outcome OutcomeOf(const std::string& text, const Row& row, size_t beside = 0) {
  const Limit limit = *ParseLimit(text);
  std::vector<Held> held;
  held.push_back(HoldAgainst(limit, row, row.contrast, {}, false));
  // Others of which nothing can be told.
  for (size_t i = 0; i < beside; ++i) {
    const Row other = RowWith(row.metric, 0.3, 0.35, 0.1);
    held.push_back(HoldAgainst(limit, other, other.contrast, {}, false));
  }
  return Judge(limit, std::move(held)).findings.front().outcome;
}

// Values that are the same in all runs.
TEST(Limit, TheLimitItselfCountsWhereItIsMeant) {
  const Row same = RowWith(Metric::kStarved, 0, 0, 0);
  EXPECT_EQ(OutcomeOf("starved > +0pt", same), Outcome::kPass);
  EXPECT_EQ(OutcomeOf("starved < +0pt", same), Outcome::kPass);
  EXPECT_EQ(OutcomeOf("starved >= +0pt", same), Outcome::kFail);
  EXPECT_EQ(OutcomeOf("starved <= +0pt", same), Outcome::kFail);
  EXPECT_EQ(OutcomeOf("starved >= +1pt", same), Outcome::kPass);
}

TEST(Judging, ALimitFailsOnlyWhereThatIsSure) {
  const Row row = RowWith(Metric::kSpinning, 0.30, 0.40, 0.02);  // +6 to +14 points
  EXPECT_EQ(OutcomeOf("spinning > +5pt", row), Outcome::kFail);
  EXPECT_EQ(OutcomeOf("spinning > +8pt", row), Outcome::kInconclusive);
  EXPECT_EQ(OutcomeOf("spinning > +15pt", row), Outcome::kPass);
  EXPECT_EQ(OutcomeOf("spinning < -5pt", row), Outcome::kPass);
  EXPECT_EQ(OutcomeOf("spinning < +15pt", row), Outcome::kFail);
  // With more vCPUs one of them may look so by chance.
  EXPECT_EQ(OutcomeOf("spinning > +5pt", row, 100), Outcome::kInconclusive);
}

TEST(Judging, UnknownTimeMayHaveBeenTheBand) {
  const Row row = RowWith(Metric::kSpinning, 0.30, 0.40, 0.02);  // +6 to +14 points
  const auto outcome = [&row](const char* text, const Doubt& doubt) {
    const Limit limit = *ParseLimit(text);
    return Judge(limit, {HoldAgainst(limit, row, row.contrast, doubt, false)}).outcome;
  };
  EXPECT_EQ(outcome("spinning > +15pt", {.a = 0.5, .b = 0.0}), Outcome::kPass);
  EXPECT_EQ(outcome("spinning > +15pt", {.a = 0.0, .b = 0.02}), Outcome::kInconclusive);
  EXPECT_EQ(outcome("spinning > +5pt", {.a = 0.0, .b = 0.5}), Outcome::kFail);
  EXPECT_EQ(outcome("spinning > +5pt", {.a = 0.02, .b = 0.0}), Outcome::kInconclusive);
  EXPECT_EQ(outcome("spinning < +5pt", {.a = 0.0, .b = 0.5}), Outcome::kPass);
  EXPECT_EQ(outcome("spinning < +5pt", {.a = 0.02, .b = 0.0}), Outcome::kInconclusive);
  EXPECT_EQ(outcome("spinning < +15pt", {.a = 0.5, .b = 0.0}), Outcome::kFail);
  EXPECT_EQ(outcome("spinning < +15pt", {.a = 0.0, .b = 0.02}), Outcome::kInconclusive);
}

TEST(Judging, WithoutTheVarianceBetweenRunsNothingPassesOrFails) {
  const Row row = RowWith(Metric::kSpinning, 0.30, 0.40, 0.02);
  for (const auto& [text, alone] :
       {std::pair("spinning > +5pt", "; FAIL for this pair of runs only"),
        std::pair("spinning > +15pt", "; PASS for this pair of runs only")}) {
    const Limit limit = *ParseLimit(text);
    JudgedLimit judged = Judge(limit, {HoldAgainst(limit, row, row.contrast, {}, false)});
    DoubtWithoutRuns(judged);
    EXPECT_EQ(judged.outcome, Outcome::kInconclusive);
    EXPECT_THAT(judged.findings.front().reason, testing::EndsWith(alone));
  }
  const Limit limit = *ParseLimit("ipc < -10%");
  JudgedLimit skipped = Judge(limit, {HoldAgainst(limit, row, std::nullopt, {}, true)});
  DoubtWithoutRuns(skipped);
  EXPECT_EQ(skipped.outcome, Outcome::kSkip);
}

TEST(Judging, WhatCannotBeToldNeverPasses) {
  const Limit limit = *ParseLimit("ipc < -10%");
  Row row{.vm = "web", .metric = Metric::kIpc};
  EXPECT_EQ(Judge(limit, {HoldAgainst(limit, row, std::nullopt, {}, false)}).outcome,
            Outcome::kInconclusive);
  EXPECT_EQ(Judge(limit, {HoldAgainst(limit, row, std::nullopt, {}, true)}).outcome,
            Outcome::kSkip);
  const Held skipped = HoldAgainst(limit, row, std::nullopt, {}, true);
  Held passed;
  passed.surely_within = true;
  EXPECT_EQ(Judge(limit, {skipped, passed}).outcome, Outcome::kSkip);
  EXPECT_EQ(Judge(limit, {skipped, passed}, /*allow_skip=*/true).outcome, Outcome::kPass);
  EXPECT_EQ(Judge(limit, {skipped}, /*allow_skip=*/true).outcome, Outcome::kSkip);
  const JudgedLimit nobody = Judge(limit, {});
  EXPECT_EQ(nobody.outcome, Outcome::kInconclusive);
  EXPECT_THAT(nobody.findings.front().reason, HasSubstr("no vCPU"));
}

}  // namespace
}  // namespace vcpulse::compare

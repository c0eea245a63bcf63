#include <limits>

#include "gtest/gtest.h"
#include "monitor/check/value_text.h"
#include "monitor/check/words.h"
#include "tests/unit/check_result.h"

namespace vcpulse::check {
namespace {

std::string Value(const Expectation& expectation, double value) {
  return ValueText(expectation.quantity, value, expectation.limit);
}

std::string BoundsOf(const Expectation& expectation, const Bounds& bounds) {
  return BoundsText(expectation.quantity, bounds, expectation.limit);
}

TEST(ValueText, HasTheUnitOfTheQuantity) {
  EXPECT_EQ(Value(SpinningAtMost5Percent(), 0.1234), "12.3 %");
  EXPECT_EQ(Value(MedianIpc(), 1.5), "1.50");
  EXPECT_EQ(Value(LongestSpin(), 0), "0.0 ms");
  EXPECT_EQ(Value(LongestSpin(), 120e6), "120.0 ms");
  EXPECT_EQ(Value(LongestSpin(), 754.2e9), "754.2 s");
}

// A share of 5.04 % fails `<= 5%`; shown as 5.0 % it would look like a wrong verdict.
TEST(ValueText, NearTheLimitItIsNotShownAsTheLimit) {
  EXPECT_EQ(Value(SpinningAtMost5Percent(), 0.05), "5.0 %");
  EXPECT_EQ(Value(SpinningAtMost5Percent(), 0.0504), "5.04 %");
  EXPECT_EQ(Value(SpinningAtMost5Percent(), 0.049999), "4.9999 %");
  EXPECT_EQ(Value(MedianIpc(), 0.8999), "0.8999");
  EXPECT_EQ(Value(LongestSpin(), 200.004e6), "200.004 ms");
  // What rounding of the sum alone added.
  EXPECT_EQ(Value(SpinningAtMost5Percent(), 0.05 + 1e-15), "5.0 %");
}

TEST(BoundsText, IsOneValueWhereBothAreShownAlike) {
  EXPECT_EQ(BoundsOf(SpinningAtMost5Percent(), {0, 0.012}), "0.0 % to 1.2 %");
  EXPECT_EQ(BoundsOf(SpinningAtMost5Percent(), {0.012, 0.012}), "1.2 %");
  EXPECT_EQ(BoundsOf(MedianIpc(), {0.5, std::numeric_limits<double>::infinity()}), "0.50 or more");
}

TEST(WorstText, IsAsExactAsTheTimeIsShort) {
  const Quantity spinning{.metric = Metric::kSpinning};
  EXPECT_EQ(WorstText(spinning, {12'340'000'000, 13'340'000'000, 1}, 0.05),
            "100.0 % from 12.3 s to 13.3 s");
  EXPECT_EQ(WorstText(spinning, {12'341'000'000, 13'340'000'000, 1}, 0.05),
            "100.0 % from 12.341 s to 13.340 s");
}

TEST(CheckWords, WhatIsWantedIsSaidAsItIsWritten) {
  EXPECT_EQ(WantedText(SpinningAtMost5Percent()), "<= 5 %");
  EXPECT_EQ(WantedText(MedianIpc()), ">= 0.9");
  EXPECT_EQ(WantedText(LongestSpin()), "<= 200ms");
  EXPECT_EQ(WantedText(Expect("", kGaps, Comparison::kBelow, 0.001)), "< 0.1 %");
  // 100 times 0.07 is no longer 7.
  EXPECT_EQ(WantedText(Expect("", {.metric = Metric::kHalted}, Comparison::kAbove, 0.07)), "> 7 %");
  EXPECT_EQ(WantedText(Expect("", {.metric = Metric::kHalted}, Comparison::kAbove, 0.999995)),
            "> 99.9995 %");
}

TEST(CheckWords, AFindingThatPassedSaysOnlyWhatWasObserved) {
  const Result result = EveryOutcome();
  const Judged& judged = result.judged[0];
  EXPECT_EQ(FindingText(judged.expectation, judged.findings[0]), "spinning 0.0 % to 1.2 %");
  EXPECT_EQ(FindingText(judged.expectation, judged.findings[1]),
            "it needs hardware counters, and none was read");
  EXPECT_EQ(ObservedText(judged.expectation, judged.findings[1]), "nothing measured");
  EXPECT_EQ(FindingText(judged.expectation, judged.findings[2]),
            "spinning 12.0 % to 14.0 %, wanted <= 5 %; worst 100.0 % from 12.3 s to 13.4 s");
}

std::string VerdictOf(const std::vector<Outcome>& outcomes) {
  Result result;
  for (const Outcome outcome : outcomes) {
    result.outcome = std::max(result.outcome, outcome);
    result.judged.push_back({.outcome = outcome});
  }
  return VerdictText(result);
}

TEST(CheckWords, TheVerdictCountsFromTheWorst) {
  constexpr Outcome kPass = Outcome::kPass;
  constexpr Outcome kFail = Outcome::kFail;
  constexpr Outcome kSkip = Outcome::kSkip;
  constexpr Outcome kInconclusive = Outcome::kInconclusive;
  EXPECT_EQ(VerdictOf({kFail, kPass, kInconclusive, kFail, kPass}),
            "FAIL: 2 of 5 expectations failed, 1 inconclusive");
  EXPECT_EQ(VerdictOf({kPass, kSkip, kInconclusive}),
            "INCONCLUSIVE: 1 of 3 expectations inconclusive, 1 skipped");
  EXPECT_EQ(VerdictOf({kPass}), "PASS: 1 of 1 expectation passed");
  EXPECT_EQ(VerdictOf({kPass, kSkip}), "PASS: 1 of 2 expectations passed, 1 skipped");
  EXPECT_EQ(VerdictOf({kSkip, kSkip}), "SKIP: 2 of 2 expectations skipped");
}

TEST(CheckWords, TheHeadSaysWhatWasJudged) {
  Result result = EveryOutcome();
  EXPECT_EQ(RecordingText(result, "run.vpt"),
            "run.vpt: host1, recorded 2026-01-02 03:04:05 UTC, 60.0 s");
  EXPECT_EQ(PartText(result), "phase spin, 2 spans, 18.0 s");
  result.spans = 0;
  EXPECT_EQ(PartText(result), "phase spin, which never came");
  result.phase.reset();
  EXPECT_EQ(PartText(result), "18.0 s of the recording");
  result.judged_ns = result.duration_ns;
  EXPECT_EQ(PartText(result), "the whole recording");
}

TEST(CheckWords, OutsideTextIsOneCleanLine) {
  EXPECT_EQ(Clean("a\x1b[2J\n\xff\xc3\xa9"), "a?[2J??\xc3\xa9");
}

}  // namespace
}  // namespace vcpulse::check

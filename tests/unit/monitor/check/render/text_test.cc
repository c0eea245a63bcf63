#include <limits>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/check/render.h"
#include "monitor/check/words.h"
#include "tests/unit/monitor/check/check_result.h"

namespace vcpulse::check {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The whole page once, as a user sees it.
TEST(RenderText, ShowsEveryOutcome) {
  EXPECT_EQ(RenderText(EveryOutcome(), "run.vpt"),
            R"(run.vpt: host1, recorded 2026-01-02 03:04:05 UTC, 60.0 s
judged: phase spin, 2 spans, 18.0 s

FAIL          vcpu=*: spinning <= 5%
  FAIL          VM web vCPU 2  spinning 12.0 % to 14.0 %, wanted <= 5 %; worst 100.0 % from 12.3 s
                               to 13.4 s
  INCONCLUSIVE  VM web vCPU 3  spinning 3.0 % to 8.0 %, wanted <= 5 %: 5.0 % of 18.0 s is not known
  PASS          VM web vCPU 0  spinning 0.0 % to 1.2 %
  SKIP          VM web vCPU 1  it needs hardware counters, and none was read
INCONCLUSIVE  vcpu=1: ipc.p50 >= 0.9
  INCONCLUSIVE  VM web vCPU 1  4 ticks measured in 400.0 ms, at least 10 are needed
PASS          longest(spinning) <= 200ms
  PASS          VM web vCPU 0  longest(spinning) 120.0 ms
SKIP          productive >= 80%
  SKIP          VM web vCPU 0  it needs hardware counters, and none was read

note: 2 chunks were damaged
FAIL: 1 of 4 expectations failed, 1 inconclusive, 1 skipped
)");
}

// A pipe gets plain text. Colours move no column.
TEST(RenderText, ColoursOnlyWhereAsked) {
  EXPECT_THAT(RenderText(EveryOutcome(), "run.vpt"), Not(HasSubstr("\x1b")));
  const std::string text = RenderText(EveryOutcome(), "run.vpt", {.colour = true});
  EXPECT_THAT(text, HasSubstr("\n\x1b[31mFAIL\x1b[0m          vcpu=*: spinning <= 5%\n"));
  EXPECT_THAT(text, HasSubstr("\n  \x1b[32mPASS\x1b[0m          VM web vCPU 0  spinning 0.0 %"));
  EXPECT_THAT(text, HasSubstr("\n  \x1b[33mINCONCLUSIVE\x1b[0m  VM web vCPU 3  spinning 3.0 %"));
  EXPECT_THAT(text, HasSubstr("\n  \x1b[2mSKIP\x1b[0m          VM web vCPU 1  it needs"));
  EXPECT_THAT(text, HasSubstr("\n\x1b[31mFAIL\x1b[0m: 1 of 4"));
}

TEST(RenderText, SaysWhichPhaseNeverCame) {
  EXPECT_EQ(RenderText(BarelyKnown(), "x"), R"(x: 0 ns
judged: phase work, which is not there

INCONCLUSIVE  vcpu=*: spinning <= 5%
  INCONCLUSIVE  vm=web  nothing fits

INCONCLUSIVE: 1 of 1 expectation inconclusive
)");
}

// Text of outside origin cannot write to the terminal, and no line ends in blanks.
TEST(RenderText, IsCleanText) {
  const std::string text = RenderText(Hostile(), "x\x1b");
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("a?[2J|`<b>&\"'#???]]>"));
  std::istringstream lines(text);
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_FALSE(!line.empty() && line.back() == ' ') << "'" << line << "'";
    EXPECT_LE(line.size(), 100u) << line;
  }
  EXPECT_GT(count, 10u);
}

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
  const auto wanted = [](const Expectation& e) { return WantedText(e, {}); };
  EXPECT_EQ(wanted(SpinningAtMost5Percent()), "<= 5 %");
  EXPECT_EQ(wanted(MedianIpc()), ">= 0.9");
  EXPECT_EQ(wanted(LongestSpin()), "<= 200ms");
  EXPECT_EQ(wanted(Expect("", kGaps, Comparison::kBelow, 0.001)), "< 0.1 %");
  // 100 times 0.07 is no longer 7.
  EXPECT_EQ(wanted(Expect("", {.metric = Metric::kHalted}, Comparison::kAbove, 0.07)), "> 7 %");
  EXPECT_EQ(wanted(Expect("", {.metric = Metric::kHalted}, Comparison::kAbove, 0.999995)),
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
  EXPECT_EQ(PartText(result, result.duration_ns), "phase spin, 2 spans, 18.0 s");
  result.spans = 0;
  EXPECT_EQ(PartText(result, result.duration_ns), "phase spin, which is not there");
  result.phase.reset();
  EXPECT_EQ(PartText(result, result.duration_ns), "18.0 s of the recording");
  result.judged_ns = result.duration_ns;
  EXPECT_EQ(PartText(result, result.duration_ns), "the whole recording");
}

TEST(CheckWords, OutsideTextIsOneCleanLine) {
  EXPECT_EQ(Clean("a\x1b[2J\n\xff\xc3\xa9"), "a?[2J??\xc3\xa9");
}

TEST(RenderMarkdown, ShowsEveryOutcome) {
  Result result = EveryOutcome();
  result.judged.erase(result.judged.begin() + 2, result.judged.end());
  EXPECT_EQ(RenderMarkdown(result, "run.vpt"),
            R"(### FAIL: 1 of 2 expectations failed, 1 inconclusive

recording: run.vpt: host1, recorded 2026-01-02 03:04:05 UTC, 60.0 s  
judged: phase spin, 2 spans, 18.0 s

**FAIL** vcpu=\*: spinning \<= 5%

| outcome | subject | spinning | wanted | worst | why |
| --- | --- | --- | --- | --- | --- |
| PASS | VM web vCPU 0 | 0.0 % to 1.2 % | \<= 5 % | - | - |
| **SKIP** | VM web vCPU 1 | - | \<= 5 % | - | it needs hardware counters, and none was read |
| **FAIL** | VM web vCPU 2 | 12.0 % to 14.0 % | \<= 5 % | 100.0 % from 12.3 s to 13.4 s | - |
| **INCONCLUSIVE** | VM web vCPU 3 | 3.0 % to 8.0 % | \<= 5 % | - | spinning 3.0 % to 8.0 %, wanted \<= 5 %: 5.0 % of 18.0 s is not known |

**INCONCLUSIVE** vcpu=1: ipc.p50 \>= 0.9

| outcome | subject | ipc.p50 | wanted | worst | why |
| --- | --- | --- | --- | --- | --- |
| **INCONCLUSIVE** | VM web vCPU 1 | 0.50 or more | \>= 0.9 | - | 4 ticks measured in 400.0 ms, at least 10 are needed |

* 2 chunks were damaged
)");
}

// A pipe would make a column, a line end a row, a tag a page of its own.
TEST(RenderMarkdown, TextOfOutsideOriginIsText) {
  EXPECT_EQ(MarkdownText("a|b`c`<d> *e* _f_ [g](h) #1 @i $j$ \\k\nl"),
            "a\\|b\\`c\\`\\<d\\> \\*e\\* \\_f\\_ \\[g\\](h) \\#1 \\@i \\$j\\$ \\\\k?l");
  const std::string markdown = RenderMarkdown(Hostile(), "x");
  EXPECT_THAT(markdown, Not(HasSubstr("<b>")));
  EXPECT_THAT(markdown, Not(HasSubstr("\x1b")));
  EXPECT_THAT(markdown, HasSubstr("| a?\\[2J\\|\\`\\<b\\>\\&\"'\\#???\\]\\]\\>"));
}

}  // namespace

}  // namespace vcpulse::check

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/check/render.h"
#include "tests/unit/check_result.h"
#include "tests/unit/run_with_input.h"

namespace vcpulse::check {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

tests::Judgement Parse(std::string_view ktap) {
  return tests::RunWithInput("python3 " VCPULSE_KTAP_PARSER, ktap);
}

TEST(RenderKtap, ShowsEveryOutcome) {
  EXPECT_EQ(RenderKtap(EveryOutcome(), "run.vpt"), R"(KTAP version 1
1..4
# run.vpt: host1, recorded 2026-01-02 03:04:05 UTC, 60.0 s
# judged: phase spin, 2 spans, 18.0 s
  KTAP version 1
  1..4
  ok 1 - VM web vCPU 0 # spinning 0.0 % to 1.2 %
  ok 2 - VM web vCPU 1 # SKIP it needs hardware counters, and none was read
  not ok 3 - VM web vCPU 2 # spinning 12.0 % to 14.0 %, wanted <= 5 %; worst 100.0 % from 12.3 s to 13.4 s
  not ok 4 - VM web vCPU 3 # ERROR inconclusive: spinning 3.0 % to 8.0 %, wanted <= 5 %: 5.0 % of 18.0 s is not known
not ok 1 - vcpu=*: spinning <= 5%
  KTAP version 1
  1..1
  not ok 1 - VM web vCPU 1 # ERROR inconclusive: 4 ticks measured in 400.0 ms, at least 10 are needed
not ok 2 - vcpu=1: ipc.p50 >= 0.9 # ERROR inconclusive
  KTAP version 1
  1..1
  ok 1 - VM web vCPU 0 # longest(spinning) 120.0 ms
ok 3 - longest(spinning) <= 200ms
  KTAP version 1
  1..1
  ok 1 - VM web vCPU 0 # SKIP it needs hardware counters, and none was read
ok 4 - productive >= 80% # SKIP it needs hardware counters, and none was read
# note: 2 chunks were damaged
# FAIL: 1 of 4 expectations failed, 1 inconclusive, 1 skipped
)");
}

TEST(RenderKtap, AParserReadsTheSameOutcomes) {
  const tests::Judgement judgement = Parse(RenderKtap(EveryOutcome(), "run.vpt"));
  EXPECT_EQ(judgement.exit_code, 0);
  EXPECT_EQ(judgement.said, R"(fail: vcpu=*: spinning <= 5%
  pass: VM web vCPU 0 | spinning 0.0 % to 1.2 %
  skip: VM web vCPU 1 | SKIP it needs hardware counters, and none was read
  fail: VM web vCPU 2 | spinning 12.0 % to 14.0 %, wanted <= 5 %; worst 100.0 % from 12.3 s to 13.4 s
  error: VM web vCPU 3 | ERROR inconclusive: spinning 3.0 % to 8.0 %, wanted <= 5 %: 5.0 % of 18.0 s is not known
error: vcpu=1: ipc.p50 >= 0.9 | ERROR inconclusive
  error: VM web vCPU 1 | ERROR inconclusive: 4 ticks measured in 400.0 ms, at least 10 are needed
pass: longest(spinning) <= 200ms
  pass: VM web vCPU 0 | longest(spinning) 120.0 ms
skip: productive >= 80% | SKIP it needs hardware counters, and none was read
  skip: VM web vCPU 0 | SKIP it needs hardware counters, and none was read
)");
}

// A '#' in a name would end it, a line end would begin another line.
TEST(RenderKtap, NamesCannotForgeAnOutcome) {
  Result result = BarelyKnown();
  result.judged[0].expectation.text = "a\nok 2 - b # SKIP";
  result.judged[0].findings[0].subject = "VM x # SKIP";
  result.notes = {"n\nok 3"};
  const std::string ktap = RenderKtap(result, "f\n1..9");
  const tests::Judgement judgement = Parse(ktap);
  EXPECT_EQ(judgement.exit_code, 0) << judgement.said << ktap;
  EXPECT_THAT(judgement.said, HasSubstr("error: a?ok 2 - b ? SKIP | ERROR inconclusive\n"));
  EXPECT_THAT(judgement.said, HasSubstr("\n  error: VM x ? SKIP | ERROR"));
  const tests::Judgement hostile = Parse(RenderKtap(Hostile(), "x"));
  EXPECT_EQ(hostile.exit_code, 0) << hostile.said;
  EXPECT_THAT(hostile.said, Not(HasSubstr("\x1b")));
}

// That the parser refuses something at all.
TEST(RenderKtap, TheParserIsStrict) {
  for (const char* ktap :
       {"", "1..1\nok 1 a\n", "KTAP version 1\nok 1 a\n", "KTAP version 1\n1..2\nok 1 a\n",
        "KTAP version 1\n1..1\nok 2 a\n", "KTAP version 1\n1..1\nok 1 a # b # c\nhello\n",
        "KTAP version 1\n1..1\nok 1 a # ERROR b\n",
        "KTAP version 1\n1..1\n  KTAP version 1\n  1..1\n  not ok 1 a\nok 1 b\n",
        "KTAP version 1\n1..0\n  KTAP version 1\n  1..1\n  ok 1 a\n",
        "KTAP version 1\n1..1\nok 1"}) {
    const tests::Judgement judgement = Parse(ktap);
    EXPECT_EQ(judgement.exit_code, 1) << ktap;
    EXPECT_THAT(judgement.said, HasSubstr("ktap_parser: ")) << ktap;
  }
}

}  // namespace
}  // namespace vcpulse::check

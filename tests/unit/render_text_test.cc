#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/check/render.h"
#include "tests/unit/check_result.h"

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
judged: phase work, which never came

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

}  // namespace
}  // namespace vcpulse::check

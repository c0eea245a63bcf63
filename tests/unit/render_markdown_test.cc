#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/check/render.h"
#include "tests/unit/check_result.h"

namespace vcpulse::check {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

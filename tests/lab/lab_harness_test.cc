// A harness marks the phases of a guest that works a second and is halted a second, in turn. Exit
// codes were checked inside; here: what the outputs say, read by other programs than ours.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "monitor/timeline/reader.h"
#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Path(const std::string& file) { return OutputPath("harness-0", file); }
std::string Text(const std::string& file) { return ReadText(Path(file)); }

TEST(Harness, MarkersAreInTheTimelineInTheirOrder) {
  std::vector<std::string> names;
  std::vector<int64_t> instants;
  const auto read = timeline::ReadTimeline(Path("harness.vpt"), [&](const timeline::Entry& entry) {
    if (const auto* marker = std::get_if<v1::Marker>(&entry.record)) {
      names.push_back(marker->name());
      instants.push_back(marker->mono_ns());
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->ended_in_order);
  EXPECT_THAT(names, ElementsAre("work", "idle", "work", "idle", "short", "rest"));
  EXPECT_TRUE(std::ranges::is_sorted(instants));
}

TEST(Harness, AFailSaysObservedWantedAndWhenItWasWorst) {
  EXPECT_THAT(Text("wrong.out"), AllOf(HasSubstr("FAIL"), HasSubstr("wanted >= 80"),
                                       HasSubstr("worst"), HasSubstr("vCPU 0")));
}

TEST(Harness, AnInconclusiveSaysWhatIsMissing) {
  EXPECT_THAT(Text("short.out"), AllOf(HasSubstr("INCONCLUSIVE"), HasSubstr("ticks")));
  EXPECT_THAT(Text("no-such-phase.out"), AllOf(HasSubstr("wrok"), HasSubstr("work")));
  EXPECT_THAT(Text("no-such-vcpu.out"), HasSubstr("INCONCLUSIVE"));
  EXPECT_THAT(Text("gaps.out"), HasSubstr("INCONCLUSIVE"));
  EXPECT_THAT(Text("no-counters.out"), AllOf(HasSubstr("SKIP"), Not(HasSubstr("PASS"))));
}

TEST(Harness, JUnitIsValidByTheSchemaOfJenkins) {
  const std::string command = std::string("xmllint --noout --schema ") + VCPULSE_JUNIT_SCHEMA +
                              " " + Path("all-kinds.xml") + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  EXPECT_THAT(Text("all-kinds.xml"), AllOf(HasSubstr("<failure"), HasSubstr("<error")));
}

TEST(Harness, KtapIsReadByAParserOfItsOwn) {
  const std::string command =
      std::string("python3 ") + VCPULSE_KTAP_PARSER + " <" + Path("all-kinds.out") + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

TEST(Harness, EachFormatHasTheOutcomes) {
  EXPECT_THAT(Text("all-kinds.out"),
              AllOf(HasSubstr("ok 1 - vcpu=*: productive by ipc-bands >= 75%"),
                    HasSubstr("not ok 2 - vcpu=0: halted >= 90%"),
                    HasSubstr("not ok 3 - vcpu=7: halted >= 1%")));
  EXPECT_THAT(Text("markdown.out"),
              AllOf(HasSubstr("### FAIL: 1 of 2 expectations failed"), HasSubstr("| **FAIL** |")));
  EXPECT_THAT(Text("json.out"), HasSubstr("\"outcome\""));
  EXPECT_THAT(Text("json.out"), HasSubstr("\"FAIL\""));
  EXPECT_THAT(Text("scheduler-times.out"), AllOf(HasSubstr("SKIP"), HasSubstr("PASS")));
  EXPECT_THAT(Text("gaps-counted.out"), HasSubstr("wanted <= 10 %"));
  EXPECT_THAT(Text("status.out"), AllOf(HasSubstr("\"recording\""), HasSubstr("\"rest\"")));
  EXPECT_THAT(Text("report.out"), AllOf(HasSubstr("work"), HasSubstr("idle"), HasSubstr("short")));
}

}  // namespace
}  // namespace vcpulse::lab

// A recording on a terminal. Needs no guest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/fakes/proc_dir.h"
#include "tests/kvm/run_program.h"
#include "tests/terminal/pseudo_terminal.h"
#include "tests/terminal/tmux.h"

namespace vcpulse::kvm_tests {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kRecording = VCPULSE_TEST_DATA "/timeline-v5.vpt";

std::string Top(const std::string& file = kRecording) { return VcpulseLine({"top", file}); }

struct Size {
  size_t columns;
  size_t rows;
};

class TopSizes : public ::testing::TestWithParam<Size> {};

TEST_P(TopSizes, ShowsARecording) {
  const auto [columns, rows] = GetParam();
  const Tmux terminal(columns, rows, Top());
  ASSERT_TRUE(terminal.Shows("END")) << terminal.Text();
  const std::string text = terminal.Text();
  EXPECT_THAT(text, HasSubstr("vcpulse top"));
  EXPECT_THAT(text, ContainsRegex("counted +S{6}"));
  EXPECT_THAT(text, ContainsRegex("vCPU 1 +S{6}"));
  EXPECT_THAT(text, HasSubstr("? help"));
  EXPECT_THAT(text, HasSubstr("SPIN"));
  terminal.Press({"q"});
  EXPECT_TRUE(terminal.Shows("exit 0")) << terminal.Text();
}

INSTANTIATE_TEST_SUITE_P(All, TopSizes,
                         ::testing::Values(Size{40, 12}, Size{60, 20}, Size{100, 30}, Size{200, 60},
                                           Size{400, 120}),
                         [](const auto& instance) {
                           return absl::StrCat(instance.param.columns, "x", instance.param.rows);
                         });

class TopTerminals : public ::testing::TestWithParam<std::string> {};

// Those that people have. The last is known to no terminfo: what is compiled in serves it.
TEST_P(TopTerminals, ShowsARecording) {
  const Tmux terminal(80, 24, Top(), GetParam());
  ASSERT_TRUE(terminal.Shows("END")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), ContainsRegex("vCPU 1 +S{6}"));
  // Keys that are sequences arrive as such.
  terminal.Press({"Down"});
  EXPECT_TRUE(terminal.Shows("counted vCPU 0  pid")) << terminal.Text();
  terminal.Press({"q"});
  EXPECT_TRUE(terminal.Shows("exit 0")) << terminal.Text();
}

INSTANTIATE_TEST_SUITE_P(All, TopTerminals,
                         ::testing::Values("xterm", "xterm-256color", "screen", "screen-256color",
                                           "tmux", "tmux-256color", "linux", "vt100",
                                           "xterm-of-no-terminfo"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(TopTest, TerminalsThatCannotMoveTheirCursorAreRefusedWithAnAlternative) {
  for (const auto& [term, why] : {std::pair("dumb", "cannot move its cursor"),
                                  std::pair("nonsense-terminal", "is not known here")}) {
    const Tmux terminal(200, 10, Top(), term);
    ASSERT_TRUE(terminal.Shows("exit 2")) << terminal.Text();
    EXPECT_THAT(terminal.Text(), HasSubstr(why));
    EXPECT_THAT(terminal.Text(), HasSubstr("`vcpulse tail`, `replay` and `report`"));
  }
}

TEST(TopTest, WhatIsNoTerminalIsRefused) {
  const Finished run = RunProgram(Vcpulse({"top", kRecording}));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("must be a terminal"));
  EXPECT_EQ(run.out, "");
}

TEST(TopTest, FilesThatAreNoneAreRefusedInOneLine) {
  const auto refused = [](const std::vector<std::string>& arguments) {
    const Finished run = RunProgram(Vcpulse(arguments));
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    return run.err;
  };
  EXPECT_THAT(refused({"top", "missing.vpt"}), HasSubstr("no such file"));
  EXPECT_THAT(refused({"top", VCPULSE_TEST_DATA "/perf-list-names.txt"}), HasSubstr("timeline"));
  EXPECT_THAT(refused({"top", kRecording, "--interval", "10ms"}),
              HasSubstr("--interval is for recording here"));
  EXPECT_THAT(refused({"top", kRecording, "--keys", "/nowhere"}), HasSubstr("/nowhere"));
  EXPECT_THAT(refused({"top", "--output", "-"}), HasSubstr("terminal"));
  EXPECT_THAT(refused({"record", "--top", "--", "true"}), HasSubstr("-- CMD cannot be used"));
  EXPECT_THAT(refused({"record", "--top", "--format", "delimited"}), HasSubstr("chunks"));
}

TEST(TopTest, ReadsWithoutColours) {
  const Tmux terminal(100, 30, "NO_COLOR=1 " + Top());
  ASSERT_TRUE(terminal.Shows("END"));
  EXPECT_THAT(terminal.Coloured(), Not(ContainsRegex("\x1b\\[[0-9;]*38;5;")));
  const Tmux coloured(100, 30, Top());
  ASSERT_TRUE(coloured.Shows("END"));
  EXPECT_THAT(coloured.Coloured(), ContainsRegex("\x1b\\[[0-9;]*38;5;166"));  // SPINNING
}

TEST(TopTest, ReadsWithoutUtf8) {
  const Tmux terminal(100, 30, "LC_ALL=C " + Top());
  ASSERT_TRUE(terminal.Shows("END"));
  EXPECT_THAT(terminal.Text(), ContainsRegex("IPC +#{6}"));
}

TEST(TopTest, FollowsTheSizeOfItsTerminal) {
  const Tmux terminal(100, 30, Top());
  ASSERT_TRUE(terminal.Shows("GHz"));
  terminal.Resize(60, 20);
  EXPECT_TRUE(terminal.ShowsNoMore("GHz")) << terminal.Text();
  EXPECT_TRUE(terminal.Shows("END"));
  terminal.Resize(20, 3);
  EXPECT_TRUE(terminal.ShowsNoMore("SPIN"));
  terminal.Resize(120, 40);
  EXPECT_TRUE(terminal.Shows("GHz")) << terminal.Text();
}

class TopFiles : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.Path(name); }

  const fakes::ProcDir folder_;
};

TEST_F(TopFiles, StopsAndGoesOnAsAJob) {
  const std::string jobs = absl::StrCat("set -m; ", Top(), "; touch ", Path("stopped"), "; fg");
  const Tmux terminal(100, 30, absl::StrCat("bash --norc -i -c ", Quote(jobs)));
  ASSERT_TRUE(terminal.Shows("END"));
  terminal.Press({"C-z"});
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(Path("stopped")); }));
  ASSERT_TRUE(terminal.Shows("END")) << terminal.Text();
  terminal.Press({"?"});
  EXPECT_TRUE(terminal.Shows("Keys")) << terminal.Text();
  terminal.Press({"Escape", "q"});
  EXPECT_TRUE(terminal.Shows("exit 0")) << terminal.Text();
}

TEST_F(TopFiles, EndsWithItsTerminal) {
  {
    const Tmux terminal(100, 30, absl::StrCat("trap '' HUP; ", Top(), "; touch ", Path("ended")));
    ASSERT_TRUE(terminal.Shows("END"));
  }
  EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(Path("ended")); }));
}

TEST_F(TopFiles, ASignalEndsItInOrder) {
  const std::string line = absl::StrCat("echo $$ > ", Path("pid"), "; exec ", Top());
  const Tmux terminal(100, 30, absl::StrCat("sh -c ", Quote(line)));
  ASSERT_TRUE(terminal.Shows("END"));
  std::ifstream file(Path("pid"));
  pid_t pid = 0;
  file >> pid;
  ASSERT_GT(pid, 1);
  kill(pid, SIGTERM);
  EXPECT_TRUE(terminal.Shows("exit 0")) << terminal.Text();
}

TEST_F(TopFiles, KeysComeFromAFile) {
  std::ofstream(Path("keys")) << "quit = ctrl-x\nhelp = q\n";
  const Tmux terminal(100, 30, VcpulseLine({"top", kRecording, "--keys", Path("keys")}));
  ASSERT_TRUE(terminal.Shows("END"));
  terminal.Press({"q"});
  ASSERT_TRUE(terminal.Shows("Keys")) << terminal.Text();
  terminal.Press({"Escape", "C-x"});
  EXPECT_TRUE(terminal.Shows("exit 0")) << terminal.Text();
}

// Nobody reads it: a signal ends it all the same.
TEST(TopTest, ATerminalThatTakesNothingHoldsNobodyUp) {
  PseudoTerminal terminal(Vcpulse({"top", kRecording}));
  ASSERT_TRUE(terminal.HasStarted());
  // Its first screen does not fit what a terminal keeps for its reader.
  ASSERT_TRUE(Eventually([&] { return terminal.Waiting() > 3000; }));
  terminal.Terminate();
  ASSERT_TRUE(Eventually([&] { return terminal.Status().has_value(); }));
  EXPECT_EQ(*terminal.Status(), 0);
}

TEST(TopTest, AStoppedTerminalHoldsNobodyUp) {
  PseudoTerminal terminal(Vcpulse({"top", kRecording}), PseudoTerminal::Begins::kStopped);
  EXPECT_TRUE(terminal.EndsThoughStopped());
}

TEST_F(TopFiles, ListsItsKeysInTheFormOfAFile) {
  const Finished run = RunProgram(Vcpulse({"top", "--list-keys"}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  std::ofstream(Path("keys")) << run.out;
  const Tmux terminal(100, 30, VcpulseLine({"top", kRecording, "--keys", Path("keys")}));
  EXPECT_TRUE(terminal.Shows("END")) << terminal.Text();
  EXPECT_THAT(run.out, HasSubstr("\npause"));
  EXPECT_THAT(run.out, HasSubstr("= q ctrl-c"));
}

TEST(TopTest, SearchesTheRecordingByKeys) {
  const Tmux terminal(100, 30, Top());
  ASSERT_TRUE(terminal.Shows("END"));
  terminal.Press({"/"});
  terminal.Type("vcpu 1");
  terminal.Press({"Enter"});
  EXPECT_TRUE(terminal.Shows("filter: vcpu 1")) << terminal.Text();
  EXPECT_TRUE(terminal.ShowsNoMore("vCPU 0"));
  terminal.Press({"Down", "e"});
  EXPECT_TRUE(terminal.Shows("Why, at")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), HasSubstr("vCPU 1 of VM counted"));
}

}  // namespace
}  // namespace vcpulse::kvm_tests

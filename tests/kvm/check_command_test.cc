// `vcpulse check` as a program: exit codes, what each output shows, and what is wrong input. Needs
// no guest: the timelines are drawn.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "boost/json.hpp"
#include "tests/fakes/proc_dir.h"
#include "tests/kvm/run_program.h"
#include "tests/unit/fixtures/drawn_recording.h"
#include "tests/unit/fixtures/run_with_input.h"

namespace vcpulse::kvm_tests {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A vCPU that works for 2 s, spins for 2 s, is marked "short" for 2 ticks, and works again.
class CheckCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_.Path("out"));
    recording_.Draw(
        "[work]PPPPPPPPPPPPPPPPPPPP[spin]SSSSSSSSSSSSSSSSSSSS[short]PP[work]PPPPPPPPPPPPPPPPPPPP");
    file_ = recording_.Finish();
  }

  Finished Check(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"check", file_});
    return RunProgram(Vcpulse(arguments));
  }

  // One line, exit code 2, nothing on standard output and no file left.
  void ExpectRefused(const std::vector<std::string>& arguments,
                     const ::testing::Matcher<std::string>& line) const {
    const Finished finished = RunProgram(Vcpulse(arguments));
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(finished.err, AllOf(StartsWith("vcpulse: "), line));
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
    EXPECT_TRUE(fs::is_empty(folder_.Path("out"))) << "something was left";
  }

  fakes::ProcDir folder_;
  check::DrawnRecording recording_;
  std::string file_;
  std::string junit_ = folder_.Path("out/junit.xml");
};

TEST_F(CheckCommand, TheExitCodeIsTheOutcome) {
  EXPECT_EQ(Check({"--phase", "work", "--expect", "vcpu=*: productive >= 80%"}).exit_code, 0);
  EXPECT_EQ(Check({"--phase", "spin", "--expect", "vcpu=*: productive >= 80%"}).exit_code, 1);
  EXPECT_EQ(Check({"--phase", "short", "--expect", "productive >= 80%"}).exit_code, 3);
  EXPECT_EQ(Check({"--phase", "never", "--expect", "productive >= 80%"}).exit_code, 3);
  EXPECT_EQ(Check({"--expect", "vcpu=7: productive >= 80%"}).exit_code, 3);

  check::DrawnRecording degraded;
  degraded.Draw("%NNNNNNNNNNNNNNNNNNNN");
  const std::string file = degraded.Finish();
  EXPECT_EQ(RunProgram(Vcpulse({"check", file, "--expect", "ipc.p50 > 1"})).exit_code, 4);
  std::vector<std::string> both = {"check",       file,       "--expect",
                                   "ipc.p50 > 1", "--expect", "gaps<=1%"};
  EXPECT_EQ(RunProgram(Vcpulse(both)).exit_code, 4);
  both.emplace_back("--allow-skip");
  EXPECT_EQ(RunProgram(Vcpulse(both)).exit_code, 0);

  check::DrawnRecording hint;
  hint.Begin(1, {.classifier = "ipc-bands"});
  hint.Draw("SSSSSSSSSSSSSSSSSSSS");
  std::vector<std::string> spins = {"check", hint.Finish(), "--expect", "spinning <= 5%"};
  EXPECT_EQ(RunProgram(Vcpulse(spins)).exit_code, 3);
  spins.emplace_back("--trust-ipc-bands");
  EXPECT_EQ(RunProgram(Vcpulse(spins)).exit_code, 1);
}

TEST_F(CheckCommand, TheWorstOutcomeCounts) {
  const std::string passes = "productive >= 80%";
  const std::string fails = "spinning >= 80%";
  const std::string nobody = "vcpu=7: halted <= 1%";
  const auto exit_code = [this](const std::vector<std::string>& expressions) {
    std::vector<std::string> arguments = {"--phase", "work"};
    for (const std::string& expression : expressions) {
      arguments.insert(arguments.end(), {"--expect", expression});
    }
    return Check(arguments).exit_code;
  };
  EXPECT_EQ(exit_code({passes, nobody}), 3);
  EXPECT_EQ(exit_code({fails, nobody, passes}), 1);
}

TEST_F(CheckCommand, AFailureSaysWhatWhenAndWanted) {
  const Finished finished = Check({"--expect", "vcpu=0 : longest(spinning) <= 200ms"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.err, "");
  EXPECT_THAT(
      finished.out,
      AllOf(StartsWith(file_ + ": host1, recorded 2026-01-02 03:04:05 UTC, 6.2 s\n"),
            HasSubstr("\nFAIL          vcpu=0 : longest(spinning) <= 200ms\n"),
            HasSubstr("longest(spinning) 2.0 s, wanted <= 200ms; worst"),
            HasSubstr("worst 2.0 s from 2.0 s"), EndsWith("\nFAIL: 1 of 1 expectation failed\n")));
}

TEST_F(CheckCommand, OptionsReachTheJudgement) {
  // The second half of each span of "work".
  const Finished skipped =
      Check({"--phase", "work", "--skip-first", "1s", "--json", "--expect", "productive >= 80%"});
  EXPECT_EQ(json::parse(skipped.out).at_pointer("/judged_s").to_number<double>(), 2);
  const std::vector<std::string> two_ticks = {"--phase", "short", "--expect", "productive >= 80%"};
  std::vector<std::string> fewer = two_ticks;
  fewer.insert(fewer.end(), {"--min-ticks", "2"});
  EXPECT_EQ(Check(fewer).exit_code, 0);
  // Of 2 s, 1 s has no sample: half was measured.
  check::DrawnRecording gaps;
  gaps.Draw("PPPPPPPPPP..........PPPPPPPPPP");
  const std::string file = gaps.Finish();
  const auto exit_code = [&file](const std::string& share) {
    return RunProgram(
               Vcpulse({"check", file, "--expect", "spinning <= 50%", "--min-measured", share}))
        .exit_code;
  };
  EXPECT_EQ(exit_code("10%"), 0);
  EXPECT_EQ(exit_code("90%"), 3);
}

TEST_F(CheckCommand, ReadsStandardInput) {
  const std::string command = Vcpulse({}).front() + " check - --expect 'gaps <= 1%'";
  const tests::Judgement judgement = tests::RunWithInput(command, Contents(file_));
  EXPECT_EQ(judgement.exit_code, 0) << judgement.said;
  EXPECT_THAT(judgement.said, StartsWith("standard input: host1"));
}

TEST_F(CheckCommand, ExpectFilesAddToTheFlags) {
  folder_.Write("ci.expect", "# of the whole\n\nspinning <= 50%  # half\ngaps <= 1%\n");
  const Finished finished =
      Check({"--expect", "halted <= 1%", "--expect-file", folder_.Path("ci.expect")});
  EXPECT_EQ(finished.exit_code, 0) << finished.err << finished.out;
  EXPECT_THAT(finished.out, EndsWith("PASS: 3 of 3 expectations passed\n"));
  EXPECT_LT(finished.out.find("halted <= 1%"), finished.out.find("spinning <= 50%"));
}

// Each of the formats, and JUnit beside one of them.
TEST_F(CheckCommand, WritesEachFormat) {
  const std::string expression = "spinning <= 5%";
  EXPECT_EQ(json::parse(Check({"--json", "--expect", expression}).out).at_pointer("/outcome"),
            "FAIL");
  EXPECT_THAT(
      Check({"--ktap", "--expect", expression}).out,
      AllOf(StartsWith("KTAP version 1\n1..1\n"), HasSubstr("\nnot ok 1 - spinning <= 5%")));
  EXPECT_THAT(Check({"--markdown", "--expect", expression}).out,
              StartsWith("### FAIL: 1 of 1 expectation failed\n"));
  const Finished text = Check({"--junit", junit_, "--expect", expression});
  EXPECT_EQ(text.exit_code, 1) << text.err;
  EXPECT_THAT(text.out, EndsWith("FAIL: 1 of 1 expectation failed\n"));
  EXPECT_THAT(Contents(junit_), AllOf(HasSubstr("<testsuite name=\"vcpulse check\" tests=\"1\" "
                                                "failures=\"1\""),
                                      EndsWith("</testsuites>\n")));
}

// Three phases, one run, one report.
TEST_F(CheckCommand, OneRunJudgesAllPhases) {
  folder_.Write("phases.expect",
                "phase=work: productive >= 90%\nphase=spin: spinning <= 5%\n"
                "phase=short: gaps <= 1%\n");
  const Finished finished = Check(
      {"--expect-file", folder_.Path("phases.expect"), "--min-ticks", "1", "--junit", junit_});
  EXPECT_EQ(finished.exit_code, 1) << finished.err << finished.out;
  EXPECT_THAT(finished.out, AllOf(HasSubstr("judged: phase work, 2 spans, 4.0 s\n"
                                            "judged: phase spin, 1 span, 2.0 s\n"),
                                  EndsWith("FAIL: 1 of 3 expectations failed\n")));
  EXPECT_THAT(Contents(junit_),
              AllOf(HasSubstr("<testsuite name=\"vcpulse check: phase work\" tests=\"1\" "
                              "failures=\"0\""),
                    HasSubstr("<testsuite name=\"vcpulse check: phase spin\" tests=\"1\" "
                              "failures=\"1\""),
                    HasSubstr("<testsuite name=\"vcpulse check: phase short\" tests=\"1\" "
                              "failures=\"0\"")));
}

TEST_F(CheckCommand, ComparesWithABaseline) {
  const std::string expression = "phase=work: productive >= baseline - 5pt";
  const Finished finished = Check({"--baseline", file_, "--expect", expression});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("baseline: " + file_));
  ExpectRefused({"check", file_, "--expect", expression},
                HasSubstr("needs a baseline: name its timeline with --baseline"));
  ExpectRefused({"check", file_, "--baseline", file_, "--expect", "gaps <= 1%"},
                HasSubstr("--baseline: no expectation uses it"));
  ExpectRefused({"check", file_, "--baseline", folder_.Path("none"), "--expect", expression},
                AllOf(HasSubstr("--baseline: cannot read "), HasSubstr("none")));
  ExpectRefused({"check", file_, "--baseline", "", "--expect", expression},
                HasSubstr("--baseline: "));
  ExpectRefused({"check", "-", "--baseline", "-", "--expect", expression},
                HasSubstr("--baseline: - is where the timeline is read from"));
  ExpectRefused({"check", "x", "--baseline", "-", "--expect-file", "-"},
                HasSubstr("--expect-file: -"));
  ExpectRefused({"check", "-", "--baseline", file_, "--expect", expression, "--junit", file_},
                HasSubstr("--junit"));
}

TEST_F(CheckCommand, AnOlderJunitIsKept) {
  std::ofstream(junit_) << "older";
  EXPECT_EQ(Check({"--junit", junit_, "--expect", "gaps <= 1%"}).exit_code, 0);
  EXPECT_EQ(Contents(junit_ + ".old"), "older");
}

TEST_F(CheckCommand, WrongExpressionsAreShownTheirPlace) {
  ExpectRefused({"check", file_, "--expect", "vcpu=*: spining <= 5%"},
                HasSubstr("--expect 'vcpu=*: spining <= 5%': column 9: "));
  // What a parser of flags would take apart, cut or swallow.
  for (const std::string expression : {"[a,b]", "{}", "-5", "vcpu=0,1", "%%"}) {
    ExpectRefused({"check", file_, "--expect", expression},
                  HasSubstr("--expect '" + expression + "': column "));
    ExpectRefused({"check", file_, "--expect=" + expression},
                  HasSubstr("--expect '" + expression + "': column "));
  }
  ExpectRefused({"check", file_, "--expect", "a\nb\x1b"}, HasSubstr("--expect 'a?b?': column 1"));
  folder_.Write("x.expect", "gaps <= 1%\n  spining <= 5%\n");
  ExpectRefused({"check", file_, "--expect-file", folder_.Path("x.expect")},
                HasSubstr("x.expect:2:3: 'spining' is none of "));
  folder_.Write("empty.expect", "# nothing yet\n");
  ExpectRefused({"check", file_, "--expect-file", folder_.Path("empty.expect")},
                HasSubstr("empty.expect: no expectation in it"));
}

TEST_F(CheckCommand, ListsOfVcpusAreTakenWhole) {
  const Finished finished = Check({"--expect", "vcpu=0,3-5: gaps <= 1%"});
  EXPECT_EQ(finished.exit_code, 2) << "gaps take no vcpu=";
  EXPECT_THAT(Check({"--expect", "vcpu=0,3-5: halted <= 1%"}).out,
              HasSubstr("vcpu=0,3-5: halted <= 1%\n"));
  // The file may also stand behind it.
  EXPECT_EQ(RunProgram(Vcpulse({"check", "--expect", "gaps <= 1%", file_})).exit_code, 0);
}

TEST_F(CheckCommand, WrongFlagsAreOneLine) {
  const std::vector<std::string> good = {"check", file_, "--expect", "gaps <= 1%"};
  const auto with = [&good](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = good;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  ExpectRefused({"check", file_}, HasSubstr("--expect EXPR or --expect-file FILE"));
  ExpectRefused(with({"--expct", "gaps <= 1%"}), HasSubstr("--expct"));
  ExpectRefused(with({"--json", "--ktap"}), AllOf(HasSubstr("--json"), HasSubstr("--ktap")));
  ExpectRefused(with({"--markdown", "--ktap"}),
                AllOf(HasSubstr("--markdown"), HasSubstr("--ktap")));
  ExpectRefused(with({"--markdown", "--json"}),
                AllOf(HasSubstr("--markdown"), HasSubstr("--json")));
  ExpectRefused(with({"--skip-first", "2"}), HasSubstr("--skip-first: '2' has no unit"));
  ExpectRefused(with({"--min-ticks", "-1"}), HasSubstr("--min-ticks: '-1'"));
  for (const std::string share : {"10", "-1%", "101%", "nan%", "%", "x"}) {
    ExpectRefused(with({"--min-measured", share}), HasSubstr("--min-measured: '" + share + "'"));
  }
  ExpectRefused(with({"--phase", ""}), HasSubstr("--phase"));
  ExpectRefused(with({"--expect-file", folder_.Path("none")}),
                AllOf(HasSubstr("--expect-file: "), HasSubstr("none")));
  ExpectRefused(with({"--expect-file", folder_.Path("out")}), HasSubstr("--expect-file: "));
  ExpectRefused(with({"--expect-file", "/dev/zero"}), HasSubstr("more than 1 MiB"));
  ExpectRefused({"check", "-", "--expect-file", "-"}, HasSubstr("--expect-file: -"));
}

TEST_F(CheckCommand, FilesThatCannotBeRead) {
  const std::vector<std::string> expect = {"--expect", "gaps <= 1%"};
  const auto of = [&expect](const std::string& file) {
    std::vector<std::string> arguments = {"check", file};
    arguments.insert(arguments.end(), expect.begin(), expect.end());
    return arguments;
  };
  ExpectRefused(of(folder_.Path("none")), AllOf(HasSubstr("none"), HasSubstr("No such file")));
  ExpectRefused(of(folder_.Path("out")), HasSubstr("/out"));
  folder_.Write("text", "no timeline\n");
  ExpectRefused(of(folder_.Path("text")), HasSubstr("/text"));
  folder_.Write("empty", "");
  ExpectRefused(of(folder_.Path("empty")), HasSubstr("/empty"));
}

TEST_F(CheckCommand, AnOlderJunitIsNoResultOfATimelineThatCannotBeRead) {
  std::ofstream(junit_) << "older";
  const Finished finished = RunProgram(
      Vcpulse({"check", folder_.Path("none"), "--expect", "gaps <= 1%", "--junit", junit_}));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("No such file"), Not(HasSubstr("report"))));
  EXPECT_THAT(Contents(junit_), AllOf(HasSubstr("errors=\"1\""), HasSubstr("No such file")));
}

// The result is never shown as a success where the file that CI waits for is not there.
TEST_F(CheckCommand, JunitThatCannotBeWritten) {
  const auto into = [this](const std::string& junit) {
    return std::vector<std::string>{"check", file_, "--expect", "gaps <= 1%", "--junit", junit};
  };
  ExpectRefused(into("/dev/full"),
                AllOf(HasSubstr("/dev/full"), HasSubstr("No space left"), Not(HasSubstr("-o)"))));
  ExpectRefused(into(folder_.Path("nowhere/x")), HasSubstr("nowhere/x"));
  ExpectRefused(into(folder_.Path("out")), HasSubstr("/out"));
  ExpectRefused(into(""), HasSubstr("--junit"));
  ExpectRefused(into("-"), HasSubstr("--junit: - is standard output"));
  folder_.Write("x.expect", "gaps <= 1%\n");
  const std::string expect_file = folder_.Path("x.expect");
  ExpectRefused({"check", file_, "--expect-file", expect_file, "--junit", expect_file},
                HasSubstr("x.expect is the file that is read"));
  ExpectRefused(into("/dev/stdout"), HasSubstr("/dev/stdout is standard output"));
  const std::string before = Contents(file_);
  ExpectRefused(into(file_), HasSubstr("--junit: " + file_ + " is the file that is read"));
  EXPECT_EQ(Contents(file_), before);
}

TEST_F(CheckCommand, AFullStandardOutputIsAnError) {
  const Finished finished =
      RunProgram({"sh", "-c", "exec \"$@\" >/dev/full", "sh", Vcpulse({}).front(), "check", file_,
                  "--expect", "gaps <= 1%"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, HasSubstr("No space left"));
}

// What a check judged can be looked at.
TEST_F(CheckCommand, ReportShowsTheSamePhase) {
  const Finished spin = RunProgram(Vcpulse({"report", file_, "--phase", "spin", "--json"}));
  EXPECT_EQ(spin.exit_code, 0) << spin.err;
  const json::value out = json::parse(spin.out);
  EXPECT_EQ(out.at_pointer("/session/duration_s").to_number<double>(), 2);
  EXPECT_EQ(out.at_pointer("/vms/0/vcpus/0/share/spinning").to_number<double>(), 1);
  EXPECT_EQ(out.at_pointer("/markers").as_array().size(), 1u);
  ExpectRefused({"report", file_, "--phase", "never"},
                HasSubstr("no phase 'never'; phases are: work, spin, short"));
  ExpectRefused({"report", file_, "--phase", "spin", "--from", "1s"}, HasSubstr("--from"));
}

// A killed recording is judged as far as it goes, and says so.
TEST_F(CheckCommand, DamageIsNoted) {
  check::DrawnRecording killed;
  killed.Draw("PPPPPPPPPPPPPPPPPPPP");
  const Finished finished =
      RunProgram(Vcpulse({"check", killed.Finish(true), "--expect", "productive >= 80%"}));
  EXPECT_THAT(finished.out, HasSubstr("\nnote: "));
  EXPECT_THAT(finished.out, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace vcpulse::kvm_tests

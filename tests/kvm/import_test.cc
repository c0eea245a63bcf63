// `vcpulse import`: what a bad file or output leaves behind, and that a good one can be read.
// Needs no guest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/fakes/proc_dir.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGood[] = "dt_ns,cycles,instructions,foo\n100000000,5,6,7\n100000000,8,9,0\n";

class Import : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_.Path("out")); }

  std::string File(const std::string& text) {
    const std::string path = folder_.Path("x.csv");
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  Finished Run(const std::string& file, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"import", format_, file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (std::ranges::find(more, "-o") == more.end()) {
      arguments.insert(arguments.end(), {"-o", output_});
    }
    return RunProgram(Vcpulse(arguments));
  }

  void ExpectRefused(const std::string& file, const std::vector<std::string>& more,
                     const ::testing::Matcher<std::string>& line) {
    const Finished finished = Run(file, more);
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(finished.err, AllOf(::testing::StartsWith("vcpulse: "), line));
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
    EXPECT_TRUE(fs::is_empty(folder_.Path("out"))) << "something was left";
  }

  std::string format_ = "csv";
  fakes::ProcDir folder_;
  std::string output_ = folder_.Path("out/x.vpt");
};

TEST_F(Import, FilesThatCannotBeRead) {
  ExpectRefused(folder_.Path("none.csv"), {}, HasSubstr("none.csv"));
  ExpectRefused(folder_.Path("out"), {}, HasSubstr("/out"));
  ExpectRefused(File(""), {}, HasSubstr("empty"));
  ExpectRefused(File("1,2\n3,4\n"), {}, HasSubstr("is it a header?"));
}

TEST_F(Import, ABadCell) {
  ExpectRefused(File("dt_ns,cycles\n100,1\n100,12x\n"), {},
                HasSubstr("row 3, column cycles: '12x' is not a whole number"));
  // Found only once the rows are in order.
  ExpectRefused(File("t_ns,dt_ns\n100,1\n100,1\n"), {}, HasSubstr("repeats row 2"));
}

TEST_F(Import, OutputsThatCannotBeWritten) {
  ExpectRefused(File(kGood), {"-o", folder_.Path("nowhere/x.vpt")}, HasSubstr("nowhere/x.vpt"));
  ExpectRefused(File(kGood), {"-o", folder_.Path("out")}, HasSubstr("/out"));
  ExpectRefused(File(kGood), {"-o", ""}, HasSubstr("--output"));
  ExpectRefused(File(kGood), {"-o", "/dev/full"}, HasSubstr("No space left"));
}

TEST_F(Import, OptionsThatCannotBe) {
  ExpectRefused(File(kGood), {"--tsc-hz", "2.5"}, HasSubstr("--tsc-hz"));
  ExpectRefused(File(kGood), {"--max-hz", "nan"}, HasSubstr("--max-hz"));
  ExpectRefused(File(kGood), {"--classifier", "best"}, HasSubstr("--classifier"));
  ExpectRefused(File(kGood), {"--profile", "no-such"}, HasSubstr("no-such"));
  const Finished nothing = RunProgram(Vcpulse({"import"}));
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("vcpulse import csv FILE"));
  EXPECT_THAT(nothing.err, AllOf(HasSubstr("jsonl"), HasSubstr("perf-json")));
  EXPECT_EQ(RunProgram(Vcpulse({"import", "xml"})).exit_code, 2);
  EXPECT_EQ(RunProgram(Vcpulse({"import", "csv", File(kGood)})).exit_code, 2);
}

// An older timeline stays where it was when the import fails, and beside it when it does not.
TEST_F(Import, AnOlderFile) {
  std::ofstream(output_) << "older";
  EXPECT_EQ(Run(File("dt_ns,cycles\n100,x\n")).exit_code, 2);
  EXPECT_EQ(fs::file_size(output_), 5u);
  EXPECT_EQ(Run(File(kGood)).exit_code, 0);
  EXPECT_EQ(fs::file_size(output_ + ".old"), 5u);
}

TEST_F(Import, ATimelineThatCanBeReported) {
  const Finished imported = Run(File(kGood), {"--max-hz", "3e9"});
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.err, AllOf(HasSubstr("ignored columns: 'foo'"),
                                  HasSubstr("imported 2 rows: 1 VM, 1 vCPU, 2 ticks")));
  const Finished report = RunProgram(Vcpulse({"report", output_}));
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_THAT(report.out, AllOf(HasSubstr("\"csv\""), HasSubstr("time_enabled_ns is absent"),
                                Not(HasSubstr("nan"))));
}

TEST_F(Import, JsonLines) {
  format_ = "jsonl";
  ExpectRefused(File("1,2\n"), {}, HasSubstr("line 1: no JSON object"));
  const Finished imported =
      Run(File("{\"interval_s\":0.1,\"cycles\":5,\"foo\":1}\n{\"interval_s\":0.1,\"cyc"));
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.err, AllOf(HasSubstr("ignored keys: 'foo'"),
                                  HasSubstr("skipped 1 line, first line 2: cut off"),
                                  HasSubstr("imported 1 interval: 1 VM, 1 vCPU, 1 tick")));
}

TEST_F(Import, PerfJson) {
  format_ = "perf-json";
  ExpectRefused(File("hello\n"), {}, HasSubstr("no line holds a count of an interval"));
  const std::string real = VCPULSE_TEST_DATA "/perf-json/total.json";
  const Finished imported = Run(real);
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.err, AllOf(HasSubstr("counts the host too"),
                                  HasSubstr("skipped 5 lines, first line 1: no JSON object")));
  const Finished report = RunProgram(Vcpulse({"report", output_}));
  EXPECT_THAT(report.out, AllOf(HasSubstr("\"perf-total\""), HasSubstr("(host-side)")));
  // Standard input and output are files like any other.
  const Finished piped = RunProgram(Vcpulse({"import", "perf-json", real, "-o", "-"}));
  EXPECT_EQ(piped.exit_code, 0);
  EXPECT_GT(piped.out.size(), 100u);
}

// What names events and threads comes from the file, and is shown on a terminal.
TEST_F(Import, NothingThatATerminalObeys) {
  format_ = "perf-json";
  const Finished imported =
      Run(File("{\"interval\" : 0.1, \"counter-value\" : \"1\", \"event\" : \"a\\u001b[2J:u\", "
               "\"event-runtime\" : 5, \"pcnt-running\" : 100.00}\n"
               "{\"interval\" : 0.1, \"counter-value\" : \"1\", \"event\" : \"cycles\"}\n"));
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(RunProgram(Vcpulse({"report", output_})).out, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace vcpulse::kvm_tests

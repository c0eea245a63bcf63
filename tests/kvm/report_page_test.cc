// `report --html` and `report --serve` as commands: what is written, refused and left behind. Needs
// no guest. tests/page looks at the page in a browser.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fakes/proc_dir.h"
#include "tests/kvm/run_program.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::kvm_tests {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ReportPage : public ::testing::Test {
 protected:
  ReportPage() {
    fs::create_directories(folder_.Path("out"));
    check::DrawnRecording drawn;
    drawn.Draw("[a]SSSSSSSSSS[b]PPPPPPPPPP");
    fs::copy_file(drawn.Finish(), file_);
  }

  Finished Html(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"report", file_, "--html"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(Vcpulse(arguments));
  }

  static void ExpectRefused(const Finished& finished, const ::testing::Matcher<std::string>& line) {
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(finished.err, AllOf(StartsWith("vcpulse: "), line));
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
  }

  fakes::ProcDir folder_;
  std::string file_ = folder_.Path("x.vpt");
  std::string page_ = folder_.Path("out/page.html");
};

TEST_F(ReportPage, WritesOneFileAndSaysNothing) {
  const Finished finished = Html({page_});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out + finished.err, "");
  const std::string page = Contents(page_);
  EXPECT_THAT(page, AllOf(StartsWith("<!doctype html>"), HasSubstr("</html>")));
  // The same timeline gives the same page, on standard output too.
  EXPECT_EQ(Html({"-"}).out, page);
  EXPECT_EQ(Html({page_}).exit_code, 0);
  EXPECT_EQ(Contents(page_ + ".old"), page);
}

TEST_F(ReportPage, APartIsAnotherPage) {
  const std::string whole = Html({"-"}).out;
  for (const std::vector<std::string>& part :
       {std::vector<std::string>{"-", "--until", "1s"}, {"-", "--phase", "b"}}) {
    const Finished finished = Html(part);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_NE(finished.out, whole);
  }
  ExpectRefused(Html({page_, "--from", "1h"}), HasSubstr("no tick in the part asked for"));
  ExpectRefused(Html({page_, "--phase", "c"}), HasSubstr("no phase "));
  EXPECT_FALSE(fs::exists(page_));
}

TEST_F(ReportPage, WhatCannotBeWritten) {
  ExpectRefused(Html({file_}), HasSubstr("--html"));
  ExpectRefused(Html({""}), HasSubstr("--html"));
  ExpectRefused(Html({"/dev/full"}), HasSubstr("No space left"));
  ExpectRefused(Html({folder_.Path("nowhere/x.html")}), HasSubstr("nowhere/x.html"));
  ExpectRefused(Html({page_, "--json"}), HasSubstr("--json"));
  ExpectRefused(Html({page_, "--explain", "vcpu=0"}), HasSubstr("--explain"));
  EXPECT_TRUE(fs::is_empty(folder_.Path("out"))) << "something was left";
}

TEST_F(ReportPage, WhatCannotBeRead) {
  std::ofstream(folder_.Path("empty.vpt"));
  for (const char* option : {"--html", "--serve"}) {
    const std::string value = option == std::string("--html") ? page_ : "tcp:127.0.0.1:0";
    ExpectRefused(RunProgram(Vcpulse({"report", folder_.Path("none.vpt"), option, value})),
                  HasSubstr("No such file"));
    ExpectRefused(RunProgram(Vcpulse({"report", folder_.Path("empty.vpt"), option, value})),
                  HasSubstr("empty"));
  }
  EXPECT_FALSE(fs::exists(page_));
}

TEST_F(ReportPage, AKilledRecordingIsShownAndToldOf) {
  check::DrawnRecording drawn;
  drawn.Draw("SSSS");
  const Finished finished = RunProgram(Vcpulse({"report", drawn.Finish(true), "--html", page_}));
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("warning"));
  EXPECT_TRUE(fs::exists(page_));
}

TEST_F(ReportPage, AddressesThatAreNotServed) {
  const auto serve = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"report", file_, "--serve"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(Vcpulse(arguments));
  };
  ExpectRefused(serve({"tcp:0.0.0.0:8080"}), HasSubstr("only this machine"));
  ExpectRefused(serve({"8080"}), HasSubstr("tcp:127.0.0.1:PORT"));
  ExpectRefused(serve({""}), HasSubstr("--serve: the value is empty"));
  ExpectRefused(serve({"tcp:127.0.0.1:0", "--from", "1s"}), HasSubstr("--from"));
  ExpectRefused(RunProgram(Vcpulse({"report", "-", "--serve", "tcp:127.0.0.1:0"})),
                HasSubstr("standard input"));
}

// The rows of the text: what is wrong is named as it was typed.
TEST_F(ReportPage, RowsOfTheTextAreChosen) {
  const auto report = [this](std::vector<std::string> more) {
    more.insert(more.begin(), {"report", file_});
    return RunProgram(Vcpulse(more));
  };
  const Finished brief = report({"--brief"});
  EXPECT_EQ(brief.exit_code, 0) << brief.err;
  EXPECT_THAT(brief.out,
              AllOf(HasSubstr("\nlongest spin: vCPU 0 for "), Not(HasSubstr("own cost"))));
  const Finished sorted = report({"--vm", "guest1", "--vcpu", "0", "--sort", "ghz", "--top", "1"});
  EXPECT_EQ(sorted.exit_code, 0) << sorted.err;
  EXPECT_THAT(sorted.out, HasSubstr(" instr  GHz\n"));
  ExpectRefused(report({"--brief", "--top", "1"}), HasSubstr("--brief"));
  ExpectRefused(report({"--vm", "web"}), HasSubstr("--vm: no VM 'web'; VMs are: 1 \"guest1\"\n"));
  ExpectRefused(report({"--vm", ""}), HasSubstr("--vm: the value is empty"));
  ExpectRefused(report({"--vcpu", "9"}), HasSubstr("--vcpu 9: no such vCPU was recorded"));
  ExpectRefused(report({"--vcpu", "x"}), HasSubstr("--vcpu 'x' is not a vCPU's index"));
  ExpectRefused(report({"--top", "-1"}), HasSubstr("--top '-1' is not a number of vCPUs"));
  ExpectRefused(report({"--sort", "speed"}), HasSubstr("--sort: 'speed' is not a metric"));
  ExpectRefused(report({"--sort", "ipc,run"}), HasSubstr("--sort: one metric is needed"));
  ExpectRefused(report({"--vm", "guest1", "--json"}), HasSubstr("--json"));
}

}  // namespace
}  // namespace vcpulse::kvm_tests

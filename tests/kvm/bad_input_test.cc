// Bad input to the vcpulse command gets one clear line with what to do, exit code 2, and loses
// nothing. Needs no guest unless a test says so.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fakes/proc_dir.h"
#include "tests/fakes/qmp_server.h"
#include "tests/kvm/paranoid_level.h"
#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class BadInput : public ::testing::Test {
 protected:
  // Runs `record` with these arguments into a folder of its own; expects the refusal.
  void ExpectRefused(std::vector<std::string> arguments,
                     const ::testing::Matcher<std::string>& line) {
    arguments.insert(arguments.begin(), "record");
    arguments.insert(arguments.end(), {"-d", "1s"});
    if (std::ranges::find(arguments, "-o") == arguments.end()) {
      arguments.insert(arguments.end(), {"-o", output_});
    }
    ExpectRefusedCommand(arguments, line);
    EXPECT_TRUE(fs::is_empty(folder_.Path("out"))) << "a partial file was left";
  }

  static void ExpectRefusedCommand(const std::vector<std::string>& arguments,
                                   const ::testing::Matcher<std::string>& line) {
    const Finished finished = RunProgram(Vcpulse(arguments));
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(finished.err, line);
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
    EXPECT_THAT(finished.err, ::testing::StartsWith("vcpulse: "));
  }

  void SetUp() override { fs::create_directories(folder_.Path("out")); }

  fakes::ProcDir folder_;
  std::string output_ = folder_.Path("out/x.vpt");
};

TEST_F(BadInput, UnknownVm) {
  ExpectRefused({"--vm", "no-such-vm"},
                AllOf(HasSubstr("'no-such-vm'"), HasSubstr("(--wait 30s waits for it)")));
}

// A shell variable that is not set must not select everything.
TEST_F(BadInput, EmptyValuesAreNoDefaults) {
  for (const std::string option :
       {"--vm", "--pid", "--qmp", "--tid", "--root", "--control", "--metrics", "--duration",
        "--wait", "--interval", "--to", "--events", "--profile", "--classifier"}) {
    ExpectRefused({option, "", "-o", output_}, HasSubstr(option + ": the value is empty"));
    ExpectRefused({option + "=", "-o", output_}, HasSubstr(option + ": the value is empty"));
  }
  ExpectRefused({"--vm=", "--all"}, HasSubstr("--vm: the value is empty: give VM"));
  for (const std::string option : {"--from", "--until", "--phase"}) {
    ExpectRefusedCommand({"report", "x.vpt", option, ""}, HasSubstr(option + ": the value is"));
    ExpectRefusedCommand({"export", "csv", "x.vpt", option, ""},
                         HasSubstr(option + ": the value is"));
  }
  ExpectRefusedCommand({"report", ""}, HasSubstr("FILE: the value is empty"));
  ExpectRefusedCommand({"mark", "", "--control", "x"}, HasSubstr("NAME: the value is empty"));
  folder_.Write("empty.toml", "[record]\nvm = \"\"\n");
  ExpectRefused({"--config", folder_.Path("empty.toml").string()},
                HasSubstr("--vm: the value is empty"));
}

TEST_F(BadInput, DeadPid) {
  // PIDs are below 2^22.
  ExpectRefused({"--pid", "4194303"}, HasSubstr("4194303"));
}

TEST_F(BadInput, APidThatIsNoVmm) {
  ExpectRefused({"--pid", std::to_string(getpid())},
                AllOf(HasSubstr(std::to_string(getpid())), HasSubstr("is not a VMM")));
}

TEST_F(BadInput, TidsThatAreNoThreads) {
  ExpectRefused({"--tid", "4194303,4194302"}, HasSubstr("419430"));
}

TEST_F(BadInput, EachPartOfTidsIsOne) {
  for (const std::string list : {"1,,2", ",1", "1,"}) {
    ExpectRefused({"--tid", list}, HasSubstr("--tid: '" + list + "' has an empty part"));
  }
  ExpectRefused({"--tid", "1,x"}, HasSubstr("--tid: 'x' is not a thread ID"));
  ExpectRefused({"--tid", "1,0"}, HasSubstr("--tid: '0' is not a thread ID"));
  ExpectRefused({"--tid", "4194305"}, HasSubstr("--tid: '4194305' is not a thread ID"));
}

TEST_F(BadInput, InputThatNeverEndsAndIsNoTimeline) {
  ExpectRefusedCommand({"report", "/dev/zero"}, HasSubstr("/dev/zero is not a vcpulse timeline"));
}

TEST_F(BadInput, ASecondTimelineWhereOneIsRead) {
  const std::vector<std::string> files = {"a.vpt", "b.vpt"};
  for (std::vector<std::string> command :
       std::vector<std::vector<std::string>>{{"check"},
                                             {"hotspots"},
                                             {"replay"},
                                             {"classify", "-o", "c"},
                                             {"symbolize", "-o", "c"}}) {
    command.insert(command.end(), files.begin(), files.end());
    ExpectRefusedCommand(command,
                         HasSubstr("unexpected argument 'b.vpt': one timeline is read here; "
                                   "`vcpulse merge` joins parts of one recording"));
  }
  ExpectRefusedCommand({"tail", "a.vpt", "b.vpt"}, HasSubstr("`vcpulse tail --help`"));
}

TEST_F(BadInput, HelpOfWhatIsNoCommand) {
  ExpectRefusedCommand({"help", "list", "nope"}, HasSubstr("unknown command 'nope'"));
  ExpectRefusedCommand({"help", "report", "--json"}, HasSubstr("takes no option '--json'"));
  ExpectRefusedCommand({"help", "report", "more"}, HasSubstr("unexpected argument 'more'"));
  const Finished full = RunProgram({"sh", "-c", "\"$0\" help > /dev/full", Vcpulse({}).front()});
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_THAT(full.err, HasSubstr("No space left"));
}

TEST_F(BadInput, AnUnclosedQuotationMarkInAConfigFile) {
  const std::string config = folder_.Path("c.toml");
  std::ofstream(config) << "[record]\ninterval = \"10ms\n";
  ExpectRefusedCommand({"--config", config, "record"},
                       HasSubstr("c.toml:2: the value of 'interval' has no closing"));
}

TEST_F(BadInput, TidsOfTwoProcesses) {
  ExpectRefused({"--tid", std::to_string(getpid()) + "," + std::to_string(getppid())},
                HasSubstr("vCPU threads of one VM"));
}

TEST_F(BadInput, AQmpSocketThatIsNotThere) {
  ExpectRefused({"--qmp", "unix:" + folder_.Path("none.sock").string()}, HasSubstr("none.sock"));
}

TEST_F(BadInput, AQmpPortThatRefuses) {
  ExpectRefused({"--qmp", "tcp:127.0.0.1:1"}, HasSubstr("127.0.0.1:1"));
}

TEST_F(BadInput, AQmpAddressThatIsNone) {
  ExpectRefused({"--qmp", "tcp:localhost"}, HasSubstr("tcp:HOST:PORT"));
}

TEST_F(BadInput, AQmpSocketThatAnswersGarbage) {
  const fakes::QmpServer server(folder_.Path("garbage.sock"), {.greeting = "SSH-2.0-OpenSSH\n"});
  ExpectRefused({"--qmp", server.address()}, HasSubstr("garbage.sock"));
}

// As one that another client holds: it accepts and says nothing.
TEST_F(BadInput, AQmpSocketThatStaysSilent) {
  const fakes::QmpServer server(folder_.Path("silent.sock"), {.greeting = ""});
  ExpectRefused({"--qmp", server.address()},
                AllOf(HasSubstr("silent.sock"), HasSubstr("another client")));
}

TEST_F(BadInput, IntervalsThatCannotBe) {
  for (const std::string interval : {"0s", "-1s", "1e9s", "0", "-1", "10", "2h", "100us", "soon"}) {
    ExpectRefused({"--interval=" + interval}, HasSubstr("--interval"));
  }
}

TEST_F(BadInput, ShortOptionsToo) {
  ExpectRefused({"-i", "0s"}, HasSubstr("--interval"));
  ExpectRefused({"-i=-1"}, HasSubstr("--interval"));
}

TEST_F(BadInput, ThresholdsThatContradict) {
  ExpectRefused({"--halted-enter", "0.5"}, HasSubstr("--halted-enter"));
  ExpectRefused({"--spinning-below", "2"}, HasSubstr("--spinning-below"));
  ExpectRefused({"--productive-from", "nan"}, HasSubstr("--spinning-below"));
}

TEST_F(BadInput, WrongProfilesAreOneLineWithTheField) {
  ExpectRefused({"--profile", "gneric"}, HasSubstr("did you mean 'generic'?"));
  ExpectRefused({"--profile", ""}, HasSubstr("--profile"));
  folder_.Write("wrong.json", R"({"name": "a", "thresholds": {"weak_below": {"value": 2,
                                                                  "origin": "me"}}})");
  ExpectRefused({"--profile", folder_.Path("wrong.json").string()},
                HasSubstr("wrong.json: thresholds.weak_below.value: 2 is not a share, 0 to 1"));
  ExpectRefusedCommand({"list", "profiles", "zen4"}, HasSubstr("neither a built-in profile"));
}

TEST_F(BadInput, UnknownWords) {
  ExpectRefused({"--classifier", "ipc"}, HasSubstr("evidence, ipc-bands"));
  ExpectRefused({"--event-set", "everything"}, HasSubstr("--event-set"));
  ExpectRefused({"--format", "xml"}, HasSubstr("--format"));
  ExpectRefused({"--frequency", "3"}, HasSubstr("--frequency"));
  ExpectRefusedCommand({"recrod"}, HasSubstr("recrod"));
  ExpectRefusedCommand({}, HasSubstr("no command given"));
}

TEST_F(BadInput, TwoTargets) {
  ExpectRefused({"--all", "--pid", "1"}, HasSubstr("--pid and --all cannot be used together"));
}

TEST_F(BadInput, CommandsInTheWrongPlace) {
  ExpectRefusedCommand({"record", "--"}, HasSubstr("no command follows --"));
  ExpectRefusedCommand({"list", "--", "true"}, HasSubstr("vcpulse record"));
}

TEST_F(BadInput, OutputThatCannotBeWritten) {
  ExpectRefused({"--all", "-o", folder_.Path("nowhere/x.vpt")}, HasSubstr("nowhere/x.vpt"));
  ExpectRefused({"--all", "-o", folder_.Path("out")}, HasSubstr("/out"));
  ExpectRefused({"--all", "-o", ""}, HasSubstr("--output"));
}

TEST_F(BadInput, AFullDisk) {
  const Finished finished = RunProgram(Vcpulse({"record", "--all", "-o", "/dev/full"}));
  EXPECT_EQ(finished.exit_code, 2);
  // VMs of other tests may be named before.
  EXPECT_THAT(finished.err, AllOf(HasSubstr("/dev/full"), HasSubstr("No space left")));
}

TEST_F(BadInput, ACommandThatCannotRun) {
  const Finished missing =
      RunProgram(Vcpulse({"record", "-o", output_, "--", "no-such-command-here"}));
  EXPECT_EQ(missing.exit_code, 127);
  const Finished denied = RunProgram(Vcpulse({"record", "-o", output_, "--", "/dev/null"}));
  EXPECT_EQ(denied.exit_code, 126);
  EXPECT_TRUE(fs::is_empty(folder_.Path("out")));
}

TEST_F(BadInput, ReportOfWhatIsNoTimeline) {
  ExpectRefusedCommand({"report", folder_.Path("none.vpt")}, HasSubstr("none.vpt"));
  ExpectRefusedCommand({"report", folder_.Path("out")}, HasSubstr("/out"));
  std::ofstream(output_) << "";
  ExpectRefusedCommand({"report", output_}, HasSubstr("empty"));
  std::ofstream(output_) << std::string(5000, 'x');
  ExpectRefusedCommand({"report", output_}, HasSubstr("x.vpt"));
}

// A second VM of the same name is not chosen by chance. Needs real guests.
TEST_F(BadInput, AmbiguousName) {
  if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
  const GuestOptions options{.name = "twin", .debug_threads = true};
  const auto one = QemuGuest::Start(options);
  const auto two = QemuGuest::Start(options);
  ASSERT_TRUE(one.ok() && two.ok());
  ExpectRefused({"--vm", "twin"}, AllOf(HasSubstr(std::to_string(one->pid())),
                                        HasSubstr(std::to_string(two->pid()))));
}

TEST_F(BadInput, ATcgGuestIsRefusedWithTheReason) {
  if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
  const auto guest = QemuGuest::Start({.name = "slow", .tcg = true});
  ASSERT_TRUE(guest.ok()) << guest.status();
  ExpectRefused({"--pid", std::to_string(guest->pid())}, HasSubstr("TCG"));
}

TEST_F(BadInput, NoPermission) {
  if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
  if (geteuid() != 0) GTEST_SKIP() << "only root can become an ordinary user";
  const auto guest = QemuGuest::Start({.name = "roots", .debug_threads = true});
  ASSERT_TRUE(guest.ok()) << guest.status();
  for (const int level : {2, 3}) {
    const ParanoidLevel paranoid(level);
    if (!paranoid.set()) GTEST_SKIP() << "perf_event_paranoid cannot be set here";
    // A copy that the user can reach, and a folder that he can write to.
    fs::copy_file(VCPULSE_BINARY, folder_.Path("vcpulse"), fs::copy_options::overwrite_existing);
    fs::permissions(folder_.Path(""), fs::perms::all);
    fs::permissions(folder_.Path("out"), fs::perms::all);
    const Finished finished = RunProgram(
        {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", folder_.Path("vcpulse"),
         "record", "--pid", std::to_string(guest->pid()), "-d", "1s", "-o", output_});
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_THAT(finished.err, AllOf(HasSubstr("perf_event_paranoid is " + std::to_string(level)),
                                    HasSubstr("cap_perfmon=ep"), HasSubstr("uid 0")));
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
    EXPECT_TRUE(fs::is_empty(folder_.Path("out")));
  }
}

}  // namespace
}  // namespace vcpulse::kvm_tests

// Guests of known instructions under this machine's KVM, and `vcpulse doctor --prove` with them.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/signals.h"
#include "kvm/discovery/discovery.h"
#include "kvm/microguest/machine.h"
#include "tests/fakes/proc_dir.h"
#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

namespace fs = std::filesystem;
using kvm::microguest::FindProgram;
using kvm::microguest::Machine;
using kvm::microguest::Program;
using kvm::microguest::Programs;
using kvm::microguest::Truth;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kForEver = ~uint64_t{0};

class Microguest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
    auto machine = Machine::Create(2);
    ASSERT_TRUE(machine.ok()) << machine.status();
    machine_ = *std::move(machine);
  }

  // What a vCPU's thread had of a CPU so far.
  double CpuSeconds(size_t vcpu) {
    std::ifstream file(absl::StrCat("/proc/self/task/", machine_->Tid(vcpu), "/schedstat"));
    double ns = 0;
    EXPECT_TRUE(file >> ns);
    return ns / 1e9;
  }

  std::unique_ptr<Machine> machine_;
};

TEST_F(Microguest, EveryProgramMakesItsTurns) {
  for (const Program& program : Programs()) {
    if (!program.CountsAreKnown() || program.name == "vector") continue;
    SCOPED_TRACE(program.name);
    const uint64_t turns = program.vcpus > 1 ? 50 : 3000;
    for (size_t i = 0; i < program.vcpus; ++i) machine_->Start(i, program, turns);
    for (size_t i = 0; i < program.vcpus; ++i) {
      const auto did = machine_->Wait(i, kLong);
      ASSERT_TRUE(did.ok()) << did.status();
      EXPECT_EQ(did->turns, turns);
      const bool looks =
          program.vcpus > 1 || program.name == "deadline" || program.truth == Truth::kMixed;
      EXPECT_TRUE(looks || did->looks == 0);
    }
  }
}

// Whose instructions not every KVM has that emulates its guests.
class RareInstructions : public Microguest, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Programs, RareInstructions, ::testing::Values("vector", "wait"),
                         [](const auto& program) { return std::string(program.param); });

TEST_P(RareInstructions, MakeTheirTurns) {
  const std::string cpu = Contents("/proc/cpuinfo");
  const bool emulates =
      cpu.find(" vmx ") == std::string::npos && cpu.find(" svm ") == std::string::npos;
  machine_->Start(0, *FindProgram(GetParam()), 50);
  const auto did = machine_->Wait(0, kLong);
  if (absl::IsUnimplemented(did.status()) && emulates) {
    GTEST_SKIP() << "this KVM emulates its guests (the CPU has no vmx or svm), and not this one";
  }
  ASSERT_TRUE(did.ok()) << did.status();
  EXPECT_EQ(did->turns, 50u);
}

TEST_F(Microguest, OneThatIsStoppedEndsWithWhatItDid) {
  machine_->Start(0, *FindProgram("loop"), kForEver);
  absl::SleepFor(absl::Milliseconds(20));
  machine_->Stop(0);
  const auto did = machine_->Wait(0, kLong);
  ASSERT_TRUE(did.ok()) << did.status();
  EXPECT_GT(did->turns, 0u);
}

TEST_F(Microguest, OneThatIsHaltedIsStoppedToo) {
  for (int round = 0; round < 20; ++round) {
    machine_->Start(0, *FindProgram("halt"), kForEver);
    if (round % 2 == 0) absl::SleepFor(absl::Milliseconds(5));
    machine_->Stop(0);
    const auto did = machine_->Wait(0, kLong);
    ASSERT_TRUE(did.ok()) << did.status();
  }
}

TEST_F(Microguest, OneThatIsHaltedTakesNoCpu) {
  const auto seconds_of = [&](const char* program) {
    machine_->Start(0, *FindProgram(program), kForEver);
    absl::SleepFor(absl::Milliseconds(20));
    const double before = CpuSeconds(0);
    absl::SleepFor(absl::Milliseconds(200));
    const double took = CpuSeconds(0) - before;
    machine_->Stop(0);
    EXPECT_TRUE(machine_->Wait(0, kLong).ok());
    return took;
  };
  EXPECT_LT(seconds_of("halt"), 0.01);
  EXPECT_GT(seconds_of("loop"), 0.02);
}

TEST_F(Microguest, ATimerWakesOneThatIsHalted) {
  for (const size_t vcpu : {0, 1, 0}) {
    const double before = CpuSeconds(vcpu);
    machine_->Start(vcpu, *FindProgram("tick"), kForEver);
    absl::SleepFor(absl::Milliseconds(300));
    machine_->Stop(vcpu);
    const auto did = machine_->Wait(vcpu, kLong);
    ASSERT_TRUE(did.ok()) << did.status();
    EXPECT_LT(CpuSeconds(vcpu) - before, 0.1);
    EXPECT_GT(did->turns, 100u) << "one each millisecond";
    EXPECT_LE(did->turns, 500u);
  }
}

// Stopped by force, even before it has ended an interrupt: a later one is woken all the same.
TEST_F(Microguest, AForcedStopLeavesNoInterruptInService) {
  for (int round = 0; round < 400; ++round) {
    machine_->Start(0, *FindProgram("tick"), kForEver);
    const auto did = machine_->Wait(0, absl::Microseconds(1000 + 7 * (round % 100)));
    ASSERT_TRUE(absl::IsDeadlineExceeded(did.status())) << did.status();
  }
  machine_->Start(0, *FindProgram("tick"), 20);
  EXPECT_TRUE(machine_->Wait(0, absl::Seconds(5)).ok());
}

// By the clock: half of the time each.
TEST_F(Microguest, PhasesSpinForHalfOfTheTime) {
  const auto rate = [&](std::optional<uint64_t> spin_bits) {
    machine_->Start(0, *FindProgram("phases"), kForEver);
    if (spin_bits) machine_->memory().MailboxOf(0).spin_bits = *spin_bits;
    const double before_s = CpuSeconds(0);  // others may run, too
    absl::SleepFor(absl::Milliseconds(200));
    machine_->Stop(0);
    const auto did = machine_->Wait(0, kLong);
    EXPECT_TRUE(did.ok()) << did.status();
    const double took_s = CpuSeconds(0) - before_s;
    return std::pair(static_cast<double>(did->turns) / took_s,
                     static_cast<double>(did->looks) / took_s);
  };
  const double works = rate(0).first;
  const double spins = rate(~uint64_t{0}).second;
  const auto [turns, looks] = rate(std::nullopt);
  EXPECT_NEAR(turns / works, 0.5, 0.25);
  EXPECT_NEAR(looks / spins, 0.5, 0.25);
}

TEST_F(Microguest, OneThatWasHaltedRunsAgain) {
  for (size_t i = 0; i < 2; ++i) {
    machine_->Start(i, *FindProgram("halt"), kForEver);
    absl::SleepFor(absl::Milliseconds(20));
    machine_->Stop(i);
    ASSERT_TRUE(machine_->Wait(i, kLong).ok());
    machine_->Start(i, *FindProgram("loop"), 1000);
    const auto did = machine_->Wait(i, kLong);
    ASSERT_TRUE(did.ok()) << did.status();
    EXPECT_EQ(did->turns, 1000u);
  }
}

// Also where its creator takes no signals; and its machine is of use again.
TEST_F(Microguest, OneThatNeverEndsIsStoppedByForce) {
  machine_.reset();
  {
    const BlockedSignals blocked;
    machine_ = *Machine::Create(1);
  }
  for (const char* program : {"loop", "halt"}) {
    SCOPED_TRACE(program);
    machine_->Start(0, *FindProgram(program), kForEver);
    const auto did = machine_->Wait(0, absl::Milliseconds(200));
    EXPECT_EQ(did.status().code(), absl::StatusCode::kDeadlineExceeded) << did.status();
    machine_->Start(0, *FindProgram("loop"), 1000);
    const auto again = machine_->Wait(0, kLong);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->turns, 1000u);
  }
}

// The lock that one held when it was stopped by force is free for the next.
TEST_F(Microguest, AnIdleMachineBeginsWithFreeLocks) {
  auto* const shared = machine_->memory().At<uint64_t>(kvm::microguest::kShared);
  for (const char* program : {"test-and-set", "ticket", "queue"}) {
    SCOPED_TRACE(program);
    shared[0] = shared[1] = 5;
    *machine_->memory().At<uint64_t>(kvm::microguest::kNode) = 1;
    machine_->Start(0, *FindProgram(program), 10);
    EXPECT_TRUE(machine_->Wait(0, absl::Seconds(5)).ok());
  }
}

TEST_F(Microguest, OneThatRunsGoesOnWithWhatItDoes) {
  machine_->Start(0, *FindProgram("loop"), kForEver);
  machine_->Start(0, *FindProgram("halt"), 1);
  EXPECT_EQ(machine_->Wait(0, absl::Milliseconds(20)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  machine_->Start(0, *FindProgram("loop"), kForEver);
  machine_->Start(0, *FindProgram("halt"), kForEver);
  machine_->Stop(0);  // as it stops a loop, not as it wakes one that halts
  const auto did = machine_->Wait(0, kLong);
  ASSERT_TRUE(did.ok()) << did.status();
  EXPECT_GT(did->turns, 0u);
}

TEST_F(Microguest, ACrashIsSaid) {
  auto* const code =
      machine_->memory().At<uint8_t>(kvm::microguest::kCode + EntryOf(*FindProgram("loop")));
  std::fill_n(code, 8, 0);
#if defined(__x86_64__)
  code[0] = 0x0f;  // UD2
  code[1] = 0x0b;
#endif
  machine_->Start(0, *FindProgram("loop"), 1000);
  const auto did = machine_->Wait(0, kLong);
  EXPECT_EQ(did.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(did.status().message()), HasSubstr("the guest crashed"));
}

TEST_F(Microguest, ItIsFoundLikeAnyVm) {
  machine_->Start(0, *FindProgram("loop"), kForEver);
  machine_->Start(1, *FindProgram("halt"), kForEver);
  const std::vector<kvm::Vm> vms = kvm::Discovery("/").FindAll();
  const auto own = std::ranges::find(vms, getpid(), &kvm::Vm::pid);
  ASSERT_NE(own, vms.end());
  ASSERT_EQ(own->vcpus.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(own->vcpus[i].tid, machine_->Tid(i));
  for (size_t i = 0; i < 2; ++i) {
    machine_->Stop(i);
    EXPECT_TRUE(machine_->Wait(i, kLong).ok());
  }
}

// What it may do outside the guest: nothing that opens, starts or sends anything.
TEST_F(Microguest, VcpuThreadsHaveFewSystemCalls) {
  std::array<int, 3> errors{};
  machine_->StartOnHost(0, [&] {
    errors[0] = open("/dev/null", O_RDONLY | O_CLOEXEC) < 0 ? errno : 0;
    errors[1] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 ? errno : 0;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    errors[2] = child < 0 ? errno : 0;
  });
  ASSERT_TRUE(machine_->Wait(0, kLong).ok());
  EXPECT_THAT(errors, ::testing::Each(EPERM));
  const auto status_of = [](pid_t tid) {
    return Contents(absl::StrCat("/proc/self/task/", tid, "/status"));
  };
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(status_of(machine_->Tid(i)), HasSubstr("\nNoNewPrivs:\t1\nSeccomp:\t2\n"));
  }
  // The others keep theirs.
  EXPECT_GE(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
}

TEST_F(Microguest, EndsWithoutATrace) {
  const auto entries = [](const char* folder) {
    const fs::directory_iterator all(folder);
    return std::distance(begin(all), end(all));
  };
  // Of vCPUs and of guests.
  const auto mappings = [] {
    const std::string maps = Contents("/proc/self/maps");
    return std::ranges::count(maps, '\n') > 0 && maps.find("kvm-vcpu") != std::string::npos;
  };
  machine_.reset();
  // A thread is joined a little before it is gone from there.
  EXPECT_TRUE(Eventually([&] { return entries("/proc/self/task") == 1; }));
  const auto descriptors_before = entries("/proc/self/fd");
  for (int round = 0; round < 10; ++round) {
    auto machine = Machine::Create(2);
    ASSERT_TRUE(machine.ok()) << machine.status();
    (*machine)->Start(0, *FindProgram("loop"), kForEver);  // destroyed while it runs
    (*machine)->Start(1, *FindProgram("halt"), kForEver);
    EXPECT_TRUE(mappings());
  }
  EXPECT_TRUE(Eventually([&] { return entries("/proc/self/task") == 1; }));
  EXPECT_EQ(entries("/proc/self/fd"), descriptors_before);
  EXPECT_FALSE(mappings());
}

// Whether this machine has a PMU or not.
TEST_F(Microguest, ProveSaysWhatItFound) {
  machine_.reset();
  const Finished finished = RunProgram(Vcpulse({"doctor", "--prove"}));
  EXPECT_THAT(finished.out, HasSubstr("an empty loop")) << finished.err;
  if (finished.exit_code == 0) {
    EXPECT_THAT(finished.out, HasSubstr("proven: the counters of this host"));
  } else {
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_THAT(
        finished.out,
        AnyOf(
            AllOf(HasSubstr("nothing to prove: "),
                  HasSubstr(" turns; there is no counter to compare"), HasSubstr("a guest halted"),
                  HasSubstr("not proven: no claim could be tried; the first line says why")),
            HasSubstr("do not trust what the counters")));
  }
}

TEST_F(Microguest, AnInterruptEndsProveAtAnyMoment) {
  machine_.reset();
  int interrupted = 0;
  for (int round = 0; round < 10; ++round) {
    RunningProgram program(Vcpulse({"doctor", "--prove"}));
    absl::SleepFor(absl::Milliseconds(1 + 23 * round));
    program.Signal(SIGINT);
    const int code = program.Wait().exit_code;
    EXPECT_THAT(code, AnyOf(0, 1, 128 + SIGINT));  // it may have ended before
    interrupted += code == 128 + SIGINT ? 1 : 0;
  }
  EXPECT_GE(interrupted, 1);
}

// Calibrates, or says in one line what is missing.
TEST_F(Microguest, CalibrateSaysWhatItFound) {
  machine_.reset();
  const Finished finished =
      RunProgram(Vcpulse({"calibrate", "--each", "200ms", "--interval", "20ms"}));
  if (finished.exit_code == 0) {
    EXPECT_THAT(finished.out, HasSubstr("\n    HALTED         halt "));
  } else {
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_THAT(finished.err, StartsWith("vcpulse: calibrate: no hardware counter can be read: "));
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1);
    EXPECT_EQ(finished.out, "");
  }
}

// Before anything is tried.
TEST(Calibrate, OptionsThatContradictEachOther) {
  const auto refused = [](std::vector<std::string> options, const std::string& message) {
    options.insert(options.begin(), "calibrate");
    const Finished finished = RunProgram(Vcpulse(options));
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_THAT(finished.err, StartsWith("vcpulse: " + message));
  };
  refused({"--install", "--profile", "generic"}, "--install and --profile cannot be used together");
  refused({"--cpus", "x"}, "--cpus: 'x' is not a list of CPUs such as 0-3,8");
  refused({"--cpus", "4095"}, "--cpus: CPU 4095 is offline, or not allowed here");
  refused({"--report", "/nosuch/x.json"}, "cannot write /nosuch/x.json: No such file or directory");
  refused({"--write-profile", "-"}, "--write-profile: - is not possible here");
  refused({"-o", "/tmp/x", "--report", "/tmp/x"}, "'/tmp/x' is named by two of");
}

class WithoutKvm : public ::testing::Test {
 protected:
  // Where this machine has /dev/kvm, as a user who may not open it.
  void Run(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = Vcpulse(arguments);
    if (!WhyNoKvm().empty()) {
      finished_ = RunProgram(command);
      return;
    }
    if (geteuid() != 0) GTEST_SKIP() << "not root: cannot become one who may not open /dev/kvm";
    fs::permissions(folder_.Path(""), fs::perms::all);
    fs::copy_file(command.front(), folder_.Path("vcpulse"));
    command.front() = folder_.Path("vcpulse");
    struct stat device{};
    ASSERT_EQ(stat("/dev/kvm", &device), 0);
    if ((device.st_mode & S_IROTH) != 0) GTEST_SKIP() << "every user may open /dev/kvm here";
    command.insert(command.begin(),
                   {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
    finished_ = RunProgram(command);
  }

  fakes::ProcDir folder_;
  Finished finished_;
};

const auto kSaysWhy = AnyOf(HasSubstr("this machine has no /dev/kvm: load KVM's module"),
                            HasSubstr("/dev/kvm may not be opened: run as root"));

TEST_F(WithoutKvm, ProveSaysWhyInOneLine) {
  Run({"doctor", "--prove"});
  if (IsSkipped()) return;
  EXPECT_EQ(finished_.exit_code, 1) << finished_.err;
  EXPECT_THAT(finished_.out, kSaysWhy);
  EXPECT_THAT(finished_.out,
              EndsWith("\nnot proven: no claim could be tried; the first line says why\n"));
  EXPECT_EQ(std::ranges::count(finished_.out, '\n'), 2);
}

TEST_F(WithoutKvm, CalibrateSaysWhyInOneLine) {
  Run({"calibrate"});
  if (IsSkipped()) return;
  EXPECT_EQ(finished_.exit_code, 1) << finished_.err;
  EXPECT_THAT(finished_.err, kSaysWhy);
  EXPECT_EQ(std::ranges::count(finished_.err, '\n'), 1);
  EXPECT_EQ(finished_.out, "");
}

}  // namespace
}  // namespace vcpulse::kvm_tests

// The errno of refused counters, provoked for real: what the kernel answers, and that vcpulse then
// says what docs/errors.md says, word by word. The rest of that page is checked at the seam
// (tests/unit/kvm/counters/errno_advice_test.cc).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "kvm/counters/counter_group.h"
#include "kvm/counters/errno_advice.h"
#include "kvm/counters/perf_events.h"
#include "kvm/discovery/discovery.h"
#include "kvm/events/event_sets.h"
#include "tests/errors_doc.h"
#include "tests/fakes/proc_dir.h"
#include "tests/fakes/qmp_server.h"
#include "tests/kvm/paranoid_level.h"
#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using Values = std::map<std::string, std::string>;

std::string Page(const std::string& name, const Values& values) {
  const std::string text = tests::Documented(VCPULSE_ERRORS_DOC, name, values);
  EXPECT_NE(text, "") << "docs/errors.md has no " << name;
  return text;
}

// One event of the kernel on one thread: errno, 0 where it opens.
int ErrnoOf(const kvm::Event& event, pid_t tid, int group_fd = -1) {
  kvm::KernelPerfEvents perf;
  perf_event_attr attr = kvm::AttrOf(event, /*leader=*/group_fd < 0);
  return perf.Open(attr, tid, group_fd).error;
}

kvm::Event Clock() { return kvm::EventsOf(kvm::EventSet::kDegraded).front(); }
kvm::Event Cycles() { return kvm::EventsOf(kvm::EventSet::kCycles).front(); }

std::string Advice(int error, const std::string& event, pid_t tid = 0) {
  return kvm::AdviseOnOpenFailure({.error = error, .event = event, .tid = tid});
}

TEST(Errno, ENOENT_AnEventThatNoPmuHas) {
  const int error = ErrnoOf({.name = "nothing", .type = 0x7ffffffe}, 0);
  EXPECT_EQ(error, ENOENT);
  EXPECT_EQ(Advice(error, "nothing"), Page("no-event", {{"EVENT", "nothing"}}));
}

TEST(Errno, ENOENT_CyclesWithoutAPmu) {
  const int error = ErrnoOf(Cycles(), 0);
  if (error == 0) GTEST_SKIP() << "this machine has a PMU";
  EXPECT_EQ(error, ENOENT);
  EXPECT_EQ(Advice(error, "cycles"), Page("no-event", {{"EVENT", "cycles"}}));
}

TEST(Errno, ESRCH_AThreadThatHasEnded) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  const int error = ErrnoOf(Clock(), child);
  EXPECT_EQ(error, ESRCH);
  EXPECT_EQ(Advice(error, "cycles", child), Page("gone", {{"THREAD", std::to_string(child)}}));
}

TEST(Errno, EINVAL_AGroupOfTwoThreads) {
  kvm::KernelPerfEvents perf;
  perf_event_attr attr = kvm::AttrOf(Clock(), /*leader=*/true);
  const auto leader = perf.Open(attr, 0, -1);
  if (!leader.ok()) GTEST_SKIP() << "no clock of its own: errno " << leader.error;
  const RunningProgram other({"sleep", "60"});
  if (ErrnoOf(Clock(), other.pid()) != 0) GTEST_SKIP() << "may not count a child";
  const int error = ErrnoOf(Clock(), other.pid(), leader.value.get());
  EXPECT_EQ(error, EINVAL);
  EXPECT_EQ(Advice(error, "task-clock"), Page("does-not-fit", {{"EVENT", "task-clock"}}));
}

// An attribute that is larger than this kernel knows, and not zero there: perf_copy_attr.
TEST(Errno, E2BIG_AttributesOfALaterKernel) {
  struct {
    perf_event_attr attr;
    uint64_t later[16];
  } larger{};
  larger.attr = kvm::AttrOf(Clock(), /*leader=*/true);
  larger.attr.size = sizeof(larger);
  larger.later[15] = 1;
  kvm::KernelPerfEvents perf;
  const int error = perf.Open(larger.attr, 0, -1).error;
  EXPECT_EQ(error, E2BIG);
  EXPECT_EQ(Advice(error, "task-clock"), Page("too-big", {{"EVENT", "task-clock"}}));
}

// Calling thread only: perf_event_open answers EPERM from now on, as in many containers.
bool RefusePerfEventOpen() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(filter), .filter = filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(Errno, EPERM_UnderASeccompFilter) {
  int pipe[2];
  ASSERT_EQ(pipe2(pipe, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool filtered = RefusePerfEventOpen();
    const int error = ErrnoOf(Clock(), 0);
    const std::string answer =
        !filtered        ? "no filter"
        : error != EPERM ? absl::StrCat("errno ", error)
                         : kvm::AdviseOnOpenFailure({.error = error, .tid = 5, .paranoid = 2});
    _exit(write(pipe[1], answer.data(), answer.size()) < 0 ? 1 : 0);
  }
  close(pipe[1]);
  char answer[1024] = {};
  EXPECT_GT(read(pipe[0], answer, sizeof(answer) - 1), 0);
  close(pipe[0]);
  waitpid(child, nullptr, 0);
  if (std::string(answer) == "no filter") GTEST_SKIP() << "this kernel has no seccomp filters";
  EXPECT_EQ(std::string(answer),
            Page("permission-seccomp", {{"THREAD", "5"}, {" of OWNER", ""}, {"LEVEL", "2"}}));
}

TEST(Errno, QmpThatStaysSilent) {
  const fakes::ProcDir folder;
  const fakes::QmpServer server(folder.Path("held.sock"), {.greeting = ""});
  const auto vm = kvm::Discovery().FindByQmp(server.address(), absl::Milliseconds(100));
  EXPECT_EQ(vm.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(vm.status().message()),
            Page("qmp-silent", {{"ADDRESS", server.address()}, {"TIMEOUT", "100ms"}}));
}

// The whole program beside a guest of root's.
class ErrnoOfRecord : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
    if (geteuid() != 0) GTEST_SKIP() << "only root can become an ordinary user";
    // A copy that an ordinary user can reach, and a folder that he can write to.
    fs::copy_file(VCPULSE_BINARY, folder_.Path("vcpulse"));
    fs::permissions(folder_.Path(""), fs::perms::all);
  }

  void StartGuest(int vcpus) {
    auto guest = QemuGuest::Start({.vcpus = vcpus, .name = "roots", .debug_threads = true});
    ASSERT_TRUE(guest.ok()) << guest.status();
    guest_ = *std::move(guest);
    const auto vm = kvm::Discovery().FindByPid(guest_->pid());
    ASSERT_TRUE(vm.ok() && !vm->vcpus.empty());
    tid_ = std::to_string(vm->vcpus.front().tid);
  }

  // `record --tid` of the guest's first vCPU, run by `wrapper`.
  Finished Record(std::vector<std::string> wrapper, bool all_vcpus = false) {
    const std::vector<std::string> record = {folder_.Path("vcpulse"),
                                             "record",
                                             all_vcpus ? "--pid" : "--tid",
                                             all_vcpus ? std::to_string(guest_->pid()) : tid_,
                                             "-d",
                                             "200ms",
                                             "-o",
                                             folder_.Path("x.vpt")};
    wrapper.insert(wrapper.end(), record.begin(), record.end());
    return RunProgram(wrapper);
  }

  Finished Doctor(std::vector<std::string> wrapper) {
    wrapper.insert(wrapper.end(), {folder_.Path("vcpulse"), "doctor"});
    return RunProgram(wrapper);
  }

  static std::vector<std::string> Nobody(const std::string& capability = "") {
    std::vector<std::string> wrapper = {"setpriv", "--reuid=65534", "--regid=65534",
                                        "--clear-groups"};
    if (!capability.empty()) {
      wrapper.push_back("--inh-caps=+" + capability);
      wrapper.push_back("--ambient-caps=+" + capability);
    }
    return wrapper;
  }

  // One line, "vcpulse: VM NAME: " and what the page says.
  void ExpectRefusal(const Finished& finished, const std::string& name, const Values& values) {
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_EQ(finished.err, "vcpulse: VM roots: " + Page(name, values) + "\n");
    EXPECT_FALSE(fs::exists(folder_.Path("x.vpt"))) << "a partial file was left";
  }

  Values Denied(int level) const {
    return {{"THREAD", tid_}, {"OWNER", "uid 0"}, {"LEVEL", std::to_string(level)}};
  }

  fakes::ProcDir folder_;
  std::optional<QemuGuest> guest_;
  std::string tid_;
};

TEST_F(ErrnoOfRecord, EACCES_OrdinaryUserAtLevel2) {
  ASSERT_NO_FATAL_FAILURE(StartGuest(1));
  const ParanoidLevel level(2);
  if (!level.set()) GTEST_SKIP() << "kernel.perf_event_paranoid cannot be set here";
  ExpectRefusal(Record(Nobody()), "permission", Denied(2));
}

TEST_F(ErrnoOfRecord, EACCES_OrdinaryUserAtLevel3) {
  ASSERT_NO_FATAL_FAILURE(StartGuest(1));
  const ParanoidLevel level(3);
  if (!level.set()) GTEST_SKIP() << "kernel.perf_event_paranoid cannot be set here";
  ExpectRefusal(Record(Nobody()), "permission-above-2", Denied(3));
}

// The level lets him in, the other user's process does not.
TEST_F(ErrnoOfRecord, EACCES_OrdinaryUserAtLevel1) {
  ASSERT_NO_FATAL_FAILURE(StartGuest(1));
  const ParanoidLevel level(1);
  if (!level.set()) GTEST_SKIP() << "kernel.perf_event_paranoid cannot be set here";
  ExpectRefusal(Record(Nobody()), "permission-other-user", Denied(1));
}

// CAP_PERFMON is what the message asks for: it helps.
TEST_F(ErrnoOfRecord, CapPerfmonIsEnoughAtLevel2) {
  ASSERT_NO_FATAL_FAILURE(StartGuest(1));
  const ParanoidLevel level(2);
  if (!level.set()) GTEST_SKIP() << "kernel.perf_event_paranoid cannot be set here";
  const Finished finished = Record(Nobody("perfmon"));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(fs::exists(folder_.Path("x.vpt")));
}

TEST_F(ErrnoOfRecord, EACCES_CapPerfmonAtLevel3) {
  ASSERT_NO_FATAL_FAILURE(StartGuest(1));
  const ParanoidLevel level(3);
  if (!level.set()) GTEST_SKIP() << "kernel.perf_event_paranoid cannot be set here";
  const Finished finished = Record(Nobody("perfmon"));
  if (finished.exit_code == 0) {
    GTEST_SKIP()
        << "this kernel takes level 3 as 2 (only Debian's and Ubuntu's refuse CAP_PERFMON)";
  }
  ExpectRefusal(finished, "permission-above-2-with-perfmon", Denied(3));
}

// Kernel mode of one's own process is refused too: `doctor` tries it on itself.
TEST_F(ErrnoOfRecord, EACCES_OnesOwnProcess) {
  for (const int wanted : {2, 3}) {
    const ParanoidLevel level(wanted);
    if (!level.set()) GTEST_SKIP() << "kernel.perf_event_paranoid cannot be set here";
    const Finished without = Doctor(Nobody());
    EXPECT_EQ(without.exit_code, 1);
    const std::string refused =
        absl::StrCat("of uid 65534 (kernel.perf_event_paranoid is ", wanted, ")\n");
    EXPECT_THAT(without.out, HasSubstr(refused));
    EXPECT_THAT(without.out, HasSubstr("recording would fail\n"));
    if (wanted > 2) continue;
    const Finished with = Doctor(Nobody("perfmon"));
    EXPECT_THAT(with.out, Not(HasSubstr(refused)));
    EXPECT_THAT(with.out, HasSubstr("ok        other-users     opened a software clock on "));
    EXPECT_THAT(with.out, Not(HasSubstr("recording would fail\n")));
  }
}

TEST_F(ErrnoOfRecord, EMFILE_MoreVcpusThanDescriptors) {
  ASSERT_NO_FATAL_FAILURE(StartGuest(24));
  ExpectRefusal(Record({"prlimit", "--nofile=40:40"}, /*all_vcpus=*/true), "descriptors",
                {{"LIMIT", "40"}});
  // The soft limit alone is no obstacle: record raises it.
  EXPECT_EQ(Record({"prlimit", "--nofile=40:400"}, /*all_vcpus=*/true).exit_code, 0);
}

// Without a PMU the recording goes on, and the timeline says why in the page's words.
TEST_F(ErrnoOfRecord, ENOENT_IsTheReasonOfADegradedRecording) {
  if (ErrnoOf(Cycles(), 0) != ENOENT) GTEST_SKIP() << "this machine has a PMU";
  ASSERT_NO_FATAL_FAILURE(StartGuest(1));
  const Finished finished = Record({});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr(Page("no-event", {{"EVENT", "cycles"}})));
}

}  // namespace
}  // namespace vcpulse::kvm_tests

// The errno of refused counters, provoked for real: what the kernel answers, and that vcpulse then
// says what docs/errors.md says, word by word. The rest of that page is checked at the seam
// (tests/unit/errno_advice_test.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "kvm/counter_group.h"
#include "kvm/discovery.h"
#include "kvm/errno_advice.h"
#include "kvm/event_sets.h"
#include "kvm/perf_events.h"
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
using ::testing::StartsWith;
using Values = std::map<std::string, std::string>;

std::string Page(const std::string& name, const Values& values) {
  const std::string text = tests::Documented(VCPULSE_ERRORS_DOC, name, values);
  EXPECT_NE(text, "") << "docs/errors.md has no " << name;
  return text;
}

// One event of the kernel on one thread: errno, 0 where it opens.
int ErrnoOf(kvm::Event event, pid_t tid, int group_fd = -1) {
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

// Before Linux 5.9 counting another user's process wanted CAP_SYS_PTRACE too; and one's own
// process needs the level's permission alone.
TEST_F(ErrnoOfRecord, EACCES_OnesOwnProcessAtLevel2) {
  const ParanoidLevel level(2);
  if (!level.set()) GTEST_SKIP() << "kernel.perf_event_paranoid cannot be set here";
  std::vector<std::string> doctor = Nobody();
  doctor.insert(doctor.end(), {folder_.Path("vcpulse"), "doctor"});
  const Finished finished = RunProgram(doctor);
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.out, HasSubstr("of uid 65534 (kernel.perf_event_paranoid is 2)\n"));
  EXPECT_THAT(finished.out, HasSubstr("recording would fail\n"));
}

TEST_F(ErrnoOfRecord, EMFILE_MoreVcpusThanDescriptors) {
  ASSERT_NO_FATAL_FAILURE(StartGuest(24));
  ExpectRefusal(Record({"prlimit", "--nofile=20:20"}, /*all_vcpus=*/true), "descriptors",
                {{"LIMIT", "20"}});
  // The soft limit alone is no obstacle: record raises it.
  EXPECT_EQ(Record({"prlimit", "--nofile=20:400"}, /*all_vcpus=*/true).exit_code, 0);
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

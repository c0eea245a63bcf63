// Discovery against real QEMU guests under this machine's KVM.
#include "kvm/discovery/discovery.h"

#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kvm/base/fd.h"
#include "kvm/discovery/qmp_client.h"
#include "kvm/proc_files.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/kvm/qemu_guest.h"

namespace vcpulse::kvm {
namespace {

using kvm_tests::GuestOptions;
using kvm_tests::QemuGuest;
using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = absl::StatusCode;

constexpr absl::Duration kLong = absl::Seconds(20);

// A root with this machine's /proc and, where asked for, its KVM debugfs: what a test sees does not
// depend on whether debugfs is mounted.
class Root {
 public:
  Root() {
    path_ = fakes::MakeTemporaryFolder();
    std::filesystem::create_symlink("/proc", path_ / "proc");
    std::filesystem::create_directories(path_ / "sys/kernel/debug");
  }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  ~Root() {
    // Never into a file system that could not be unmounted.
    if (mounted_ && ::umount2((path_ / "sys/kernel/debug").c_str(), MNT_DETACH) != 0) return;
    std::filesystem::remove_all(path_);
  }

  // Why debugfs cannot be had, in words; "" where it can be read now.
  std::string MountDebugfs() {
    const std::filesystem::path place = path_ / "sys/kernel/debug";
    mounted_ = ::mount("none", place.c_str(), "debugfs", 0, nullptr) == 0;
    if (!mounted_) return std::string("debugfs cannot be mounted: ") + std::strerror(errno);
    if (!std::filesystem::exists(place / "kvm")) return "this kernel has no KVM debugfs";
    return "";
  }

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
  bool mounted_ = false;
};

std::vector<pid_t> TidsOf(const Vm& vm) {
  std::vector<pid_t> tids;
  for (const Vcpu& vcpu : vm.vcpus) tids.push_back(vcpu.tid);
  return tids;
}

// What QMP itself says, which needs no discovery on a host without PID namespaces.
std::vector<pid_t> TidsByQmp(const std::string& address) {
  const auto reply = QueryQmp(address, kLong);
  EXPECT_TRUE(reply.ok()) << reply.status();
  std::vector<pid_t> tids;
  if (reply.ok()) {
    for (const QmpCpu& cpu : reply->answers.cpus) tids.push_back(cpu.tid);
  }
  return tids;
}

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + kLong;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return true;
}

class KvmDiscovery : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = kvm_tests::WhyNoKvm();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  // A guest that runs, or a failed test.
  static QemuGuest Start(const GuestOptions& options) {
    auto guest = QemuGuest::Start(options);
    if (!guest.ok()) throw std::runtime_error(guest.status().ToString());
    return *std::move(guest);
  }

  Root root_;
  Discovery discovery_{root_.path()};
};

TEST_F(KvmDiscovery, ThreadNamesAgreeWithQmp) {
  const QemuGuest guest =
      Start({.vcpus = 3, .name = "kvm-names", .debug_threads = true, .qmp_unix = true});
  const std::vector<pid_t> expected = TidsByQmp(guest.qmp_unix());
  ASSERT_THAT(expected, SizeIs(3));
  const auto vm = discovery_.FindByName("kvm-names");
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_EQ(vm->pid, guest.pid());
  EXPECT_EQ(vm->accelerator, Accelerator::kKvm);
  EXPECT_THAT(TidsOf(*vm), ElementsAreArray(expected));
  EXPECT_THAT(vm->notes, IsEmpty());
  for (const Vcpu& vcpu : vm->vcpus) {
    EXPECT_EQ(vcpu.found_by, FoundBy::kThreadName);
    EXPECT_EQ(vcpu.proof, Proof::kFd);
    EXPECT_EQ(vcpu.kvm_id, vcpu.index);
    EXPECT_GT(vcpu.start_time_ticks, 0u);
  }
}

// Neither debug-threads nor debugfs, as virtme-ng starts its guests.
TEST_F(KvmDiscovery, QmpFindsUnnamedThreadsOverUnixAndTcp) {
  const QemuGuest guest = Start({.vcpus = 2, .name = "kvm-qmp", .qmp_unix = true, .qmp_tcp = true});
  for (const std::string& address : {guest.qmp_unix(), guest.qmp_tcp()}) {
    const auto vm = discovery_.FindByQmp(address, kLong);
    ASSERT_TRUE(vm.ok()) << vm.status();
    EXPECT_EQ(vm->pid, guest.pid());
    EXPECT_EQ(vm->name, "kvm-qmp");
    ASSERT_THAT(vm->vcpus, SizeIs(2));
    EXPECT_EQ(vm->vcpus[1].found_by, FoundBy::kQmp);
    EXPECT_EQ(vm->vcpus[1].proof, Proof::kFd);
    EXPECT_THAT(TidsOf(*vm), ElementsAreArray(TidsByQmp(address)));
    EXPECT_EQ(*discovery_.Rescan(*vm), *vm);
  }
}

// As devlib starts its guests: neither name nor QMP nor thread names.
TEST_F(KvmDiscovery, DebugfsFindsUnnamedThreads) {
  const std::string reason = root_.MountDebugfs();
  if (!reason.empty()) GTEST_SKIP() << reason;
  const QemuGuest guest = Start({.vcpus = 2});
  std::vector<Vcpu> vcpus;
  // A vCPU is in debugfs from its first run on.
  ASSERT_TRUE(Eventually([&] {
    const auto vm = discovery_.FindByPid(guest.pid());
    if (vm.ok()) vcpus = vm->vcpus;
    return vcpus.size() == 2;
  }));
  for (int i = 0; i < 2; ++i) {
    const Vcpu& vcpu = vcpus[static_cast<size_t>(i)];
    EXPECT_EQ(vcpu.index, i);
    EXPECT_EQ(vcpu.kvm_id, i);
    EXPECT_EQ(vcpu.found_by, FoundBy::kDebugfs);
    EXPECT_EQ(vcpu.proof, Proof::kFd);
    EXPECT_NE(vcpu.tid, guest.pid());
  }
  EXPECT_EQ(discovery_.FindByPid(guest.pid())->name, "pid-" + std::to_string(guest.pid()));
}

// Without any route the VM is listed and says how to get further; its TIDs may be given.
TEST_F(KvmDiscovery, UnnamedThreadsMayBeGiven) {
  const QemuGuest guest = Start({.vcpus = 2, .name = "kvm-tids", .qmp_unix = true});
  const auto found = discovery_.FindByPid(guest.pid());
  ASSERT_TRUE(found.ok()) << found.status();
  // Kernels that keep guest time find them once the guest has run for a tick.
  if (found->vcpus.empty()) {
    ASSERT_FALSE(found->notes.empty());
    EXPECT_THAT(found->notes.front(), HasSubstr(guest.qmp_unix()));
  }
  const std::vector<pid_t> tids = TidsByQmp(guest.qmp_unix());
  const auto vm = discovery_.FindByTids(tids);
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_THAT(TidsOf(*vm), ElementsAreArray(tids));
  EXPECT_EQ(vm->vcpus[0].proof, Proof::kFd);
  EXPECT_EQ(vm->name, "kvm-tids");
}

TEST_F(KvmDiscovery, TidsOfTwoVmsAreRefused) {
  const QemuGuest one = Start({.name = "kvm-one", .qmp_unix = true});
  const QemuGuest two = Start({.name = "kvm-two", .qmp_unix = true});
  std::vector<pid_t> tids = TidsByQmp(one.qmp_unix());
  tids.push_back(TidsByQmp(two.qmp_unix()).at(0));
  EXPECT_EQ(discovery_.FindByTids(tids).status().code(), Code::kInvalidArgument);
}

// Its counters would read zero, which looks like HALTED.
TEST_F(KvmDiscovery, TcgIsRefusedByEveryWay) {
  const QemuGuest guest = Start({.name = "kvm-tcg", .qmp_unix = true, .tcg = true});
  std::vector<absl::Status> refusals = {discovery_.FindByPid(guest.pid()).status(),
                                        discovery_.FindByName("kvm-tcg").status(),
                                        discovery_.FindByQmp(guest.qmp_unix(), kLong).status()};
  for (const absl::Status& refusal : refusals) {
    EXPECT_EQ(refusal.code(), Code::kFailedPrecondition);
    EXPECT_THAT(std::string(refusal.message()), AllOf(HasSubstr("kvm-tcg"), HasSubstr("TCG")));
  }
  const std::vector<pid_t> tids = TidsByQmp(guest.qmp_unix());
  EXPECT_EQ(discovery_.FindByTids(tids).status().code(), Code::kFailedPrecondition);
  const std::vector<Vm> vms = discovery_.FindAll();
  const auto listed = std::ranges::find(vms, guest.pid(), &Vm::pid);
  ASSERT_NE(listed, vms.end());
  EXPECT_EQ(listed->accelerator, Accelerator::kTcg);
}

TEST_F(KvmDiscovery, TwoVmsOfOneNameAreNotChosenBetween) {
  const QemuGuest one = Start({.name = "kvm-twin", .debug_threads = true});
  const QemuGuest two = Start({.name = "kvm-twin", .debug_threads = true});
  const auto vm = discovery_.FindByName("kvm-twin");
  EXPECT_EQ(vm.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(vm.status().message()),
              AllOf(HasSubstr(std::to_string(one.pid())), HasSubstr(std::to_string(two.pid()))));
}

TEST_F(KvmDiscovery, RescanSeesTheEndAndARestartIsAnotherInstance) {
  const GuestOptions options = {.name = "kvm-again", .debug_threads = true};
  QemuGuest guest = Start(options);
  const Vm first = *discovery_.FindByName("kvm-again");
  EXPECT_EQ(*discovery_.Rescan(first), first);
  guest.Kill();
  EXPECT_EQ(discovery_.Rescan(first).status().code(), Code::kNotFound);
  guest = Start(options);
  const auto second = discovery_.FindByName("kvm-again");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(second->pid == first.pid && second->start_time_ticks == first.start_time_ticks);
  EXPECT_EQ(discovery_.Rescan(first).status().code(), Code::kNotFound);
}

// QEMU accepts a second client and says nothing to it.
TEST_F(KvmDiscovery, AQmpSocketInUseTimesOut) {
  const QemuGuest guest = Start({.name = "kvm-busy-qmp", .qmp_unix = true});
  const std::string path = guest.qmp_unix().substr(5);
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(where.sun_path));
  std::strncpy(where.sun_path, path.c_str(), sizeof(where.sun_path) - 1);
  {
    const Fd holder(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(holder.get(), reinterpret_cast<sockaddr*>(&where), sizeof(where)), 0);
    char first = 0;
    ASSERT_EQ(::read(holder.get(), &first, 1), 1);  // greeted: QEMU serves this client now
    const auto vm = discovery_.FindByQmp(guest.qmp_unix(), absl::Milliseconds(300));
    EXPECT_EQ(vm.status().code(), Code::kUnavailable);
    EXPECT_THAT(std::string(vm.status().message()), HasSubstr("another client"));
  }
  const auto vm = discovery_.FindByQmp(guest.qmp_unix(), kLong);
  EXPECT_TRUE(vm.ok()) << "free again: " << vm.status();
}

TEST_F(KvmDiscovery, FindsWhatThisProcessStarted) {
  const QemuGuest guest = Start({.name = "kvm-child", .debug_threads = true});
  const std::vector<Vm> vms = discovery_.FindDescendants(::getpid());
  ASSERT_THAT(vms, SizeIs(1));
  EXPECT_EQ(vms[0].pid, guest.pid());
}

// Time on a CPU and waiting for one, of a vCPU thread: what it wants, however busy the machine.
SchedStat TimesOf(const Vm& vm) {
  const auto text = ReadSmallFile("/proc/" + std::to_string(vm.pid) + "/task/" +
                                  std::to_string(vm.vcpus.at(0).tid) + "/schedstat");
  return ParseSchedStat(text.value_or("")).value_or(SchedStat{});
}

// The fixture's own promise, on which tests of recordings rest.
TEST_F(KvmDiscovery, GuestProgramsRun) {
  for (const auto program : {kvm_tests::GuestProgram::kHalt, kvm_tests::GuestProgram::kBusy}) {
    const QemuGuest guest =
        Start({.name = "kvm-program", .debug_threads = true, .program = program});
    ASSERT_TRUE(guest.WaitForProgram(kLong));
    const Vm vm = *discovery_.FindByName("kvm-program");
    const SchedStat before = TimesOf(vm);
    absl::SleepFor(absl::Milliseconds(300));
    const SchedStat after = TimesOf(vm);
    const uint64_t wanted_ns =
        after.run_ns - before.run_ns + after.run_delay_ns - before.run_delay_ns;
    if (program == kvm_tests::GuestProgram::kHalt) {
      EXPECT_LT(wanted_ns, 100'000'000u);
    } else {
      EXPECT_GT(wanted_ns, 200'000'000u);
    }
  }
}

}  // namespace
}  // namespace vcpulse::kvm

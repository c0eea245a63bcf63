// What doctor says of permissions, KVM and guests, with small trees.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "kvm/discovery/discovery.h"
#include "kvm/doctor/checks.h"
#include "tests/fakes/fake_perf_events.h"
#include "tests/fakes/host_tree.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::kvm::doctor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using State = Finding::State;

constexpr uint64_t kRoot = 0x1ffffffffff;

class Doctor : public ::testing::Test {
 protected:
  // A QEMU with two vCPUs.
  void AddQemu(const std::vector<std::string>& more, bool named) {
    std::vector<std::string> arguments = {"/usr/bin/qemu-system-x86_64", "-accel", "kvm"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    proc_.AddProcess(10, "qemu-system-x86", arguments,
                     {"anon_inode:kvm-vm", "anon_inode:kvm-vcpu:0", "anon_inode:kvm-vcpu:1"});
    proc_.AddThread(10, 11, named ? "CPU 0/KVM" : "qemu-system-x86", 1001);
    proc_.AddThread(10, 12, named ? "CPU 1/KVM" : "qemu-system-x86", 1002);
  }

  std::vector<Finding> OtherUsers() {
    const std::vector<Vm> vms = Discovery(proc_.root()).FindAll();
    return CheckOtherUsers(perf_, proc_.root(), root_rights_, vms, /*pids_are_ours=*/true);
  }

  std::vector<SeenVm> Seen() { return LookAt(proc_.root(), Discovery(proc_.root()).FindAll()); }

  fakes::ProcDir proc_;
  fakes::FakePerfEvents perf_;
  OwnRights root_rights_{.effective = kRoot, .seccomp = 0, .open_files = 1024, .effective_uid = 0};
};

TEST(DoctorVerdict, NotesNeverCount) {
  std::vector<Finding> findings = {
      {.state = State::kOk}, {.state = State::kNote, .prevents = true}, {.state = State::kUnknown}};
  EXPECT_EQ(VerdictOf(findings), Verdict::kComplete);
  findings.push_back({.state = State::kFail});
  EXPECT_EQ(VerdictOf(findings), Verdict::kDegraded);
  findings.push_back({.state = State::kFail, .prevents = true});
  findings.push_back({.state = State::kFail});
  EXPECT_EQ(VerdictOf(findings), Verdict::kFails);
}

TEST(DoctorVerdict, WhatIsUnknownOfARunningVmIsNotComplete) {
  std::vector<Finding> findings = {{.state = State::kNote, .of_vm = true}};
  EXPECT_EQ(VerdictOf(findings), Verdict::kComplete);
  findings.push_back({.state = State::kUnknown, .of_vm = true});
  EXPECT_EQ(VerdictOf(findings), Verdict::kUnknown);
  findings.push_back({.state = State::kFail});
  EXPECT_EQ(VerdictOf(findings), Verdict::kDegraded);
}

TEST(DoctorIsolatedCpus, NamesWhatIsPinnedToThem) {
  const std::string root = fakes::HostTree("libvirt-cgroup-v2");
  std::vector<Vm> vms = Discovery(root).FindAll();
  const Finding pinned = CheckIsolatedCpus(root, vms);
  EXPECT_EQ(pinned.state, State::kNote);
  EXPECT_EQ(pinned.answered,
            "isolated 2-3, nohz_full 3; pinned there, and interrupted at each tick while it runs: "
            "vCPU 0 of VM 'mail' (PID 8800) on CPU 2, vCPU 2 of VM 'mail' (PID 8800) on CPU 3");
  EXPECT_THAT(pinned.fix, HasSubstr("--interval"));
  EXPECT_EQ(VerdictOf(std::vector{pinned}), Verdict::kComplete);

  const Finding elsewhere = CheckIsolatedCpus(root, std::span(vms).subspan(1));
  EXPECT_EQ(elsewhere.state, State::kOk);
  EXPECT_THAT(elsewhere.answered, HasSubstr("no vCPU that was found is pinned there"));

  vms[1].vcpus[0].tid = 1;  // ended meanwhile
  EXPECT_EQ(CheckIsolatedCpus(root, std::span(vms).subspan(1)).state, State::kUnknown);
}

TEST_F(Doctor, WithoutIsolatedCpusNothingIsDisturbed) {
  proc_.Write("sys/devices/system/cpu/isolated", "\n");
  proc_.Write("sys/devices/system/cpu/nohz_full", "  (null)\n");
  AddQemu({}, true);
  const Finding finding = CheckIsolatedCpus(proc_.root(), Discovery(proc_.root()).FindAll());
  EXPECT_EQ(finding.state, State::kOk);
  EXPECT_EQ(finding.answered, "none");
}

// It probes: the level is told beside what the kernel answered, not judged by its number.
TEST_F(Doctor, TheLevelIsTried) {
  proc_.Write("proc/sys/kernel/perf_event_paranoid", "4\n");
  Finding finding = CheckParanoid(perf_, proc_.root(), root_rights_);
  EXPECT_EQ(finding.state, State::kOk);
  EXPECT_THAT(finding.answered, HasSubstr("kernel.perf_event_paranoid is 4"));
  ASSERT_THAT(perf_.opened, SizeIs(1));
  EXPECT_EQ(perf_.opened[0].type, PERF_TYPE_SOFTWARE);
  EXPECT_EQ(perf_.opened[0].exclude_kernel, 0u);

  perf_.refused_threads[0] = EACCES;
  finding = CheckParanoid(perf_, proc_.root(), {.effective = 0, .effective_uid = 1000});
  EXPECT_EQ(finding.state, State::kFail);
  EXPECT_TRUE(finding.prevents);
  EXPECT_THAT(finding.answered, AllOf(HasSubstr("uid 1000"), HasSubstr("is 4")));
  EXPECT_THAT(finding.fix, AllOf(HasSubstr("sysctl kernel.perf_event_paranoid=2"),
                                 HasSubstr("setcap cap_perfmon=ep")));

  perf_.refused_threads[0] = ENOSYS;
  EXPECT_THAT(CheckParanoid(perf_, proc_.root(), {}).fix, HasSubstr("CONFIG_PERF_EVENTS"));
}

TEST_F(Doctor, OtherUsersVcpusAreTried) {
  AddQemu({"-name", "web,debug-threads=on"}, /*named=*/true);
  auto findings = OtherUsers();
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].state, State::kOk);
  EXPECT_THAT(findings[0].answered, HasSubstr("vCPU 0 of VM 'web' (PID 10)"));
  perf_.refused_threads[11] = EACCES;
  findings = OtherUsers();
  EXPECT_EQ(findings[0].state, State::kFail);
  EXPECT_TRUE(findings[0].prevents) << "there is no other VM";
  EXPECT_THAT(findings[0].answered, HasSubstr("thread 11"));
  perf_.refused_threads[11] = ESRCH;
  findings = OtherUsers();
  EXPECT_EQ(findings[0].state, State::kUnknown);
  EXPECT_EQ(VerdictOf(findings), Verdict::kComplete) << "it runs no longer";
}

TEST_F(Doctor, ARefusedVmPreventsNothingBesideOneThatOpens) {
  AddQemu({}, /*named=*/true);
  proc_.AddProcess(30, "firecracker", {"firecracker"},
                   {"anon_inode:kvm-vm", "anon_inode:kvm-vcpu"});
  proc_.AddThread(30, 31, "fc_vcpu 0", 1001);
  perf_.refused_threads[31] = EACCES;
  auto findings = OtherUsers();
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[0].state, State::kOk);
  EXPECT_EQ(findings[1].state, State::kFail);
  EXPECT_EQ(VerdictOf(findings), Verdict::kDegraded);

  // Nor does a refusal of one's own thread.
  perf_.refused_threads[0] = EACCES;
  proc_.Write("proc/self/status", "NSpid:\t77\n");
  const std::vector<Vm> vms = Discovery(proc_.root()).FindAll();
  findings = CheckPermission(perf_, proc_.root(), root_rights_, vms);
  EXPECT_EQ(VerdictOf(findings), Verdict::kDegraded);
  perf_.refused_threads[11] = EPERM;
  EXPECT_EQ(VerdictOf(OtherUsers()), Verdict::kFails);
  EXPECT_EQ(VerdictOf(CheckPermission(perf_, proc_.root(), root_rights_, {})), Verdict::kFails);
}

TEST_F(Doctor, ARefusedFirstProcessIsANote) {
  perf_.refused_threads[1] = EACCES;
  const auto findings = OtherUsers();
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].state, State::kNote);
  EXPECT_FALSE(findings[0].prevents);
  EXPECT_THAT(findings[0].answered, HasSubstr("thread 1"));
}

// The TIDs that such a /proc shows are other threads to perf_event_open.
TEST_F(Doctor, AnotherPidNamespacePreventsAndItsThreadsAreNotOpened) {
  AddQemu({"-name", "web,debug-threads=on"}, /*named=*/true);
  const std::vector<Vm> vms = Discovery(proc_.root()).FindAll();
  for (const char* status : {"NSpid:\t4711\t7\n", ""}) {
    if (*status)
      proc_.Write("proc/self/status", status);
    else
      std::filesystem::remove(proc_.Path("proc/self/status"));
    const auto findings = CheckPermission(perf_, proc_.root(), root_rights_, vms);
    EXPECT_EQ(findings[0].id, "pid-namespace");
    EXPECT_EQ(findings[0].state, State::kFail);
    EXPECT_THAT(findings[0].fix, HasSubstr("--pid=host"));
    EXPECT_EQ(VerdictOf(findings), Verdict::kFails);
    EXPECT_EQ(findings[2].id, "other-users");
    EXPECT_EQ(findings[2].state, State::kUnknown);
    EXPECT_FALSE(perf_.groups.contains(11));
    EXPECT_FALSE(perf_.groups.contains(1));
  }
  proc_.Write("proc/self/status", "NSpid:\t4711\n");
  EXPECT_EQ(VerdictOf(CheckPermission(perf_, proc_.root(), root_rights_, vms)), Verdict::kComplete);
  EXPECT_TRUE(perf_.groups.contains(11));
}

TEST_F(Doctor, CapabilitiesAreNamed) {
  EXPECT_EQ(CheckCapabilities(root_rights_).state, State::kOk);
  const Finding finding = CheckCapabilities({.effective = uint64_t{1} << 38});
  EXPECT_EQ(finding.state, State::kNote);
  EXPECT_THAT(finding.answered,
              AllOf(HasSubstr("lacks CAP_BPF (each reading interrupts the vCPUs that run), "
                              "CAP_SYS_PTRACE"),
                    HasSubstr("CAP_DAC_READ_SEARCH"), HasSubstr("CAP_SYS_NICE (no --realtime)"),
                    Not(HasSubstr("PERFMON"))));
  EXPECT_THAT(finding.fix,
              HasSubstr("setcap cap_perfmon,cap_bpf,cap_sys_ptrace,cap_dac_read_search,"
                        "cap_sys_nice=ep"));
  EXPECT_EQ(CheckCapabilities({}).state, State::kUnknown);
}

TEST_F(Doctor, SeccompIsANote) {
  EXPECT_EQ(CheckSeccomp(root_rights_).state, State::kOk);
  EXPECT_EQ(CheckSeccomp({.seccomp = 2}).state, State::kNote);
  EXPECT_EQ(CheckSeccomp({}).state, State::kUnknown);
}

TEST_F(Doctor, KvmIsWhereAModuleOrTheDeviceIs) {
  Finding finding = CheckKvm(proc_.root());
  EXPECT_EQ(finding.state, State::kFail);
  EXPECT_TRUE(finding.prevents);
  EXPECT_THAT(finding.fix, HasSubstr("modprobe kvm_"));
  proc_.Write("dev/kvm", "");
  EXPECT_THAT(CheckKvm(proc_.root()).answered, HasSubstr("built in; /dev/kvm is present"));
  std::filesystem::remove(proc_.Path("dev/kvm"));
  proc_.Write("sys/module/kvm_amd/parameters/nested", "1\n");
  finding = CheckKvm(proc_.root());
  EXPECT_EQ(finding.state, State::kOk);
  EXPECT_THAT(finding.answered, HasSubstr("kvm_amd; /dev/kvm is absent"));
}

TEST_F(Doctor, KvmsParametersAreRead) {
  EXPECT_EQ(CheckNested(proc_.root()).answered, "no such parameter");
  proc_.Write("sys/module/kvm_intel/parameters/nested", "N\n");
  EXPECT_EQ(CheckNested(proc_.root()).answered, "kvm_intel: off");
  proc_.Write("sys/module/kvm_intel/parameters/nested", "Y\n");
  EXPECT_THAT(CheckNested(proc_.root()).answered, HasSubstr("kvm_intel: on"));

  EXPECT_EQ(CheckMediatedVpmu(proc_.root()).state, State::kOk);
  proc_.Write("sys/module/kvm_intel/parameters/enable_mediated_pmu", "Y\n");
  const Finding finding = CheckMediatedVpmu(proc_.root());
  EXPECT_EQ(finding.state, State::kFail);
  EXPECT_TRUE(finding.prevents);
  EXPECT_THAT(finding.answered, HasSubstr("enable_mediated_pmu=Y"));
  EXPECT_THAT(finding.fix, HasSubstr("load kvm_intel with enable_mediated_pmu=N"));
}

TEST_F(Doctor, AVirtualHostIsANote) {
  EXPECT_EQ(CheckVirtualHost(proc_.root()).state, State::kUnknown);
  proc_.Write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor_x sse\n");
  EXPECT_EQ(CheckVirtualHost(proc_.root()).state, State::kOk);
  proc_.Write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse hypervisor\n\n");
  EXPECT_EQ(CheckVirtualHost(proc_.root()).state, State::kNote);
}

TEST_F(Doctor, DebugfsIsANote) {
  const Finding finding = CheckDebugfs(proc_.root());
  EXPECT_EQ(finding.state, State::kNote);
  EXPECT_THAT(finding.fix, HasSubstr("mount -t debugfs"));
  proc_.AddDebugfsVcpu(10, 3, 0, 11);
  EXPECT_EQ(CheckDebugfs(proc_.root()).state, State::kOk);
}

TEST_F(Doctor, NoVmIsANote) {
  const auto findings = CheckVms(Seen());
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, "guests");
  EXPECT_EQ(findings[0].state, State::kNote);
}

TEST_F(Doctor, AVmWithNamedThreadsIsComplete) {
  AddQemu({"-name", "web,debug-threads=on"}, /*named=*/true);
  const auto findings = CheckVms(Seen());
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, "vcpus");
  EXPECT_EQ(findings[0].state, State::kOk);
  EXPECT_EQ(findings[0].answered, "VM 'web' (PID 10): 2 vCPUs, found by thread-name");
  EXPECT_THAT(findings[0].tried, HasSubstr("VM 'web' (PID 10)"));
  EXPECT_THAT(CheckThreadNames(Seen()), IsEmpty());
}

TEST_F(Doctor, UnnamedThreadsAreAFailureWhereNoRouteTellsThem) {
  AddQemu({"-name", "web"}, /*named=*/false);
  auto findings = CheckVms(Seen());
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].state, State::kFail);
  EXPECT_FALSE(findings[0].prevents);  // of other VMs
  EXPECT_THAT(findings[0].fix, HasSubstr("debug-threads=on"));
  findings = CheckThreadNames(Seen());
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].state, State::kNote);

  proc_.AddDebugfsVcpu(10, 0, 0, 11);
  proc_.AddDebugfsVcpu(10, 0, 1, 12);
  EXPECT_EQ(CheckVms(Seen())[0].answered, "VM 'web' (PID 10): 2 vCPUs, found by debugfs");
  EXPECT_THAT(CheckThreadNames(Seen()), SizeIs(1));
}

// A thread counts as a vCPU once it has run guest code: one that has not is not seen.
TEST_F(Doctor, VcpusFoundByGuestTimeMayBeTooFew) {
  AddQemu({"-name", "web"}, /*named=*/false);
  proc_.AddThread(10, 11, "qemu-system-x86", 1001, /*guest_ticks=*/9);
  const auto findings = CheckVms(Seen());
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].state, State::kUnknown);
  EXPECT_THAT(findings[0].answered, AllOf(HasSubstr("1 vCPU, found by guest-time"),
                                          HasSubstr("cannot tell whether any is missing")));
  EXPECT_THAT(findings[0].fix, HasSubstr("debug-threads=on"));
  EXPECT_EQ(VerdictOf(findings), Verdict::kUnknown);
  proc_.HideDescriptors(10);  // another user's: how many there should be is not known
  EXPECT_EQ(CheckVms(Seen())[0].state, State::kUnknown);
}

TEST_F(Doctor, DescriptorsWithoutThreadsMustBeExplained) {
  AddQemu({"-name", "web"}, /*named=*/false);
  proc_.AddDebugfsVcpu(10, 0, 0, 11);
  proc_.AddDebugfsVcpu(10, 0, 1, 0);  // has not run
  EXPECT_EQ(CheckVms(Seen())[0].state, State::kUnknown);
  proc_.AddDebugfsVcpu(10, 0, 1, 999);  // its thread is gone: unplugged
  EXPECT_EQ(CheckVms(Seen())[0].state, State::kNote);
  EXPECT_EQ(VerdictOf(CheckVms(Seen())), Verdict::kComplete);
}

TEST_F(Doctor, AQemuThatNamesItsThreadsHasUnpluggedTheOthers) {
  AddQemu({"-name", "web,debug-threads=on"}, /*named=*/true);
  proc_.RemoveThread(10, 12);
  EXPECT_EQ(CheckVms(Seen())[0].state, State::kNote);

  // Another VMM makes all descriptors before the threads.
  proc_.AddProcess(30, "firecracker", {"firecracker"},
                   {"anon_inode:kvm-vm", "anon_inode:kvm-vcpu:0", "anon_inode:kvm-vcpu:1"});
  proc_.AddThread(30, 31, "fc_vcpu 0", 1001);
  const auto findings = CheckVms(Seen());
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[1].state, State::kUnknown);
}

TEST_F(Doctor, AQmpSocketIsTheFirstRemedy) {
  AddQemu({"-qmp", "unix:/run/q.sock,server=on,wait=off"}, /*named=*/false);
  EXPECT_THAT(CheckVms(Seen())[0].fix, HasSubstr("--qmp unix:/run/q.sock"));
}

TEST_F(Doctor, ATcgGuestIsANote) {
  proc_.AddProcess(20, "qemu-system-x86", {"qemu-system-x86_64", "-accel", "tcg"}, {});
  const auto findings = CheckVms(Seen());
  EXPECT_EQ(findings[0].state, State::kNote);
  EXPECT_THAT(findings[0].answered, HasSubstr("TCG"));
  EXPECT_THAT(CheckThreadNames(Seen()), IsEmpty());
}

TEST_F(Doctor, SilentQmpSocketsAreNotes) {
  AddQemu({"-qmp", "unix:/run/a,server=on", "-qmp", "unix:b,server=on", "-qmp",
           "tcp:127.0.0.1:4444,server=on"},
          /*named=*/true);
  std::vector<std::string> asked;
  const auto findings = CheckQmp(
      Seen(),
      [&asked](const std::string& address) {
        asked.push_back(address);
        return address == "unix:/run/a" ? absl::UnavailableError("no greeting") : absl::OkStatus();
      },
      /*most=*/2);
  // The relative one is looked for in QEMU's own folder.
  EXPECT_THAT(asked,
              ::testing::ElementsAre("unix:/run/a", "unix:" + proc_.root() + "/proc/10/cwd/b"));
  ASSERT_THAT(findings, SizeIs(3));
  EXPECT_EQ(findings[0].state, State::kNote);
  EXPECT_EQ(findings[0].answered, "VM 'pid-10' (PID 10): no greeting");
  EXPECT_EQ(findings[1].state, State::kOk);
  EXPECT_EQ(findings[2].state, State::kNote);
  EXPECT_THAT(findings[2].answered, HasSubstr("not tried"));
}

// Its path is one of its own mount namespace: a container's, or the host's below --root.
TEST_F(Doctor, AQmpSocketIsLookedForInItsQemusRoot) {
  AddQemu({"-qmp", "unix:/run/a,server=on"}, /*named=*/true);
  EXPECT_THAT(Seen().at(0).qmp_addresses, ::testing::ElementsAre("unix:/run/a"))
      << "its root may not be followed";
  std::filesystem::create_directory_symlink("/", proc_.Path("proc/10/root"));
  EXPECT_THAT(Seen().at(0).qmp_addresses,
              ::testing::ElementsAre("unix:" + proc_.root() + "/proc/10/root/run/a"));
}

TEST_F(Doctor, DescriptorsAreCountedForAllVcpus) {
  AddQemu({}, /*named=*/true);
  const std::vector<Vm> vms = Discovery(proc_.root()).FindAll();
  // 2 vCPUs of 8, and 64 for all else.
  EXPECT_EQ(CheckDescriptors({.open_files = 80}, vms, 8).state, State::kOk);
  const Finding finding = CheckDescriptors({.open_files = 79}, vms, 8);
  EXPECT_EQ(finding.state, State::kFail);
  EXPECT_TRUE(finding.prevents);
  EXPECT_THAT(finding.answered,
              AllOf(HasSubstr("is 79"), HasSubstr("2 vCPUs now would take up to 80")));
  EXPECT_THAT(finding.fix, HasSubstr("ulimit -Hn 160"));
  EXPECT_EQ(CheckDescriptors({.open_files = 80}, vms, 15).state, State::kFail);
  EXPECT_EQ(CheckDescriptors({}, vms, 8).state, State::kUnknown);
}

// What each VM's counts come from, and why there are none of KVM's.
TEST_F(Doctor, TheSourcesOfReasonsAreNamed) {
  AddQemu({}, /*named=*/true);
  proc_.Write("proc/10/task/11/sched",
              "x (11, #threads: 3)\nse.sum_exec_runtime : 1.000000\nse.nr_migrations : "
              "4\nnr_voluntary_switches : 5\n"
              "nr_involuntary_switches : 6\n");
  const std::vector<Vm> vms = Discovery(proc_.root()).FindAll();
  const auto statistics = CheckStatistics(proc_.root(), vms, 8);
  ASSERT_THAT(statistics, SizeIs(1));
  EXPECT_EQ(statistics[0].state, State::kNote);
  EXPECT_THAT(statistics[0].answered,
              AllOf(HasSubstr("(PID 10): scheduler; none of KVM's: "), HasSubstr("descriptor")));
  EXPECT_THAT(CheckStatistics(proc_.root(), vms, 0), IsEmpty());
  perf_.refused[{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES}] = ENOENT;
  const Finding hot = CheckHotAddresses(perf_, proc_.root());
  EXPECT_EQ(hot.state, State::kNote);
  EXPECT_THAT(hot.answered, AllOf(HasSubstr("none but QMP: cycles: no 'cycles' event"),
                                  HasSubstr("; kvm-exit: the format")));
  const Finding competitors = CheckCompetitors(perf_, proc_.root());
  EXPECT_EQ(competitors.state, State::kNote);
  EXPECT_THAT(competitors.answered,
              HasSubstr("cannot be watched: the format of sched:sched_switch"));
}

// All of it on a host that has everything: no obstacle, and each obstacle has a fix on one that
// has nothing.
TEST_F(Doctor, ExaminesAWholeHost) {
  auto& group = perf_.groups[0];
  group.time_enabled_ns = group.time_running_ns = 3'000'000;
  group.host_counts[PERF_COUNT_HW_CPU_CYCLES] = 9'000'000;
  proc_.Write("dev/kvm", "");
  proc_.Write("sys/bus/event_source/devices/cpu/type", "4\n");
  proc_.Write("proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n");
  AddQemu({"-name", "web,debug-threads=on"}, /*named=*/true);
  const auto good = Examine(perf_, proc_.root());
  EXPECT_EQ(VerdictOf(good), Verdict::kComplete);
  std::vector<std::string> ids;
  for (const Finding& finding : good) ids.push_back(finding.id);
  EXPECT_THAT(
      ids, ::testing::IsSupersetOf(
               {"kvm",           "mediated-vpmu", "nested",        "virtual-host",  "paranoid",
                "other-users",   "capabilities",  "seccomp",       "pid-namespace", "pmu",
                "host-cycles",   "guest-only",    "events-full",   "events-core",   "events-min",
                "events-cycles", "nmi-watchdog",  "vcpus",         "debugfs",       "descriptors",
                "isolated-cpus", "wake-ups",      "hot-addresses", "competitors",   "statistics",
                "reader"}));
  EXPECT_TRUE(perf_.groups.contains(11)) << "the vCPU's own thread is tried";

  fakes::ProcDir nothing;
  perf_.refused[{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES}] = ENOENT;
  perf_.refused[{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK}] = EACCES;
  const auto bad = Examine(perf_, nothing.root());
  EXPECT_EQ(VerdictOf(bad), Verdict::kFails);
  for (const Finding& finding : bad) {
    EXPECT_NE(finding.tried, "") << finding.id;
    EXPECT_NE(finding.answered, "") << finding.id;
    EXPECT_TRUE(finding.state != State::kFail || !finding.fix.empty()) << finding.id;
  }
  EXPECT_EQ(std::ranges::count(bad, State::kFail, &Finding::state), 4);
}

}  // namespace
}  // namespace vcpulse::kvm::doctor

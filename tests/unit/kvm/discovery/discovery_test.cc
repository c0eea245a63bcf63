// Which VMs there are, their vCPUs and how they were found, and the ways to ask for one.
#include "kvm/discovery/vm_probe.h"
#include "tests/unit/kvm/discovery/discovery_fixture.h"

namespace vcpulse::kvm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Why descriptors cannot be read, to whoever runs the tests.
const char* const kMayNotRead = geteuid() == 0 ? "even by root" : "CAP_SYS_PTRACE";

TEST_F(DiscoveryTest, FindsVmsAndNothingElse) {
  AddQemu(100, {"-name", "a", "-uuid", "5C7D0C7E-8b0a-4a35-9a3e-1f2d3c4b5a69"}, 2, true);
  tree_.AddProcess(200, "firecracker", {"/usr/bin/firecracker"},
                   {kVmLink, "anon_inode:kvm-vcpu:0"});
  tree_.AddThread(200, 205, "fc_vcpu 0", 1003);
  const std::vector<Vm> vms = discovery_.FindAll();
  ASSERT_EQ(vms.size(), 2u);

  EXPECT_EQ(vms[0].pid, 100);
  EXPECT_EQ(vms[0].start_time_ticks, 1000u);
  EXPECT_EQ(vms[0].name, "a");
  EXPECT_EQ(vms[0].uuid, "5c7d0c7e-8b0a-4a35-9a3e-1f2d3c4b5a69");
  EXPECT_EQ(vms[0].accelerator, Accelerator::kKvm);
  EXPECT_THAT(vms[0].notes, IsEmpty());
  EXPECT_THAT(vms[0].vcpus, ElementsAre(Vcpu{0, 0, 110, 1002, FoundBy::kThreadName, Proof::kFd},
                                        Vcpu{1, 1, 111, 1002, FoundBy::kThreadName, Proof::kFd}));

  EXPECT_EQ(vms[1].name, "pid-200");
  EXPECT_THAT(vms[1].vcpus, ElementsAre(Vcpu{0, 0, 205, 1003, FoundBy::kThreadName, Proof::kFd}));
}

// A QEMU without debug-threads has debugfs alone. It keeps dead TIDs and shows 0 for vCPUs that
// never ran.
TEST_F(DiscoveryTest, DebugfsFindsUnnamedThreads) {
  AddQemu(100, {}, 4, false);
  const std::vector<pid_t> tids = {110, 111, 0, 9999};
  for (size_t i = 0; i < tids.size(); ++i) {
    tree_.AddDebugfsVcpu(100, 2, static_cast<int>(i) * 2, tids[i]);
  }
  const auto vm = discovery_.FindByPid(100);
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_THAT(vm->vcpus, ElementsAre(Vcpu{0, 0, 110, 1002, FoundBy::kDebugfs, Proof::kFd},
                                     Vcpu{1, 2, 111, 1002, FoundBy::kDebugfs, Proof::kFd}));
  EXPECT_THAT(vm->notes, ElementsAre(HasSubstr("4 kvm-vcpu descriptors for 2 threads")));
}

// After an unplug debugfs still lists the vCPU, with the TID that was its thread's.
TEST_F(DiscoveryTest, DebugfsKeepsUnpluggedVcpus) {
  AddQemu(100, {}, 3, true);
  for (int i = 0; i < 3; ++i) tree_.AddDebugfsVcpu(100, 2, i, 110 + i);
  tree_.RemoveThread(100, 111);
  const auto vm = discovery_.FindByPid(100);
  EXPECT_THAT(IndexesOf(*vm), ElementsAre(0, 2));
  EXPECT_THAT(KvmIdsOf(*vm), ElementsAre(0, 2));
}

// debugfs of another VM, and files beside the VMs.
TEST_F(DiscoveryTest, DebugfsIsReadForTheRightVm) {
  AddQemu(100, {}, 1, false);
  tree_.AddDebugfsVcpu(1000, 2, 0, 111);
  tree_.AddDebugfsVcpu(10, 0, 0, 110);
  tree_.Write("sys/kernel/debug/kvm/exits", "0\n");
  EXPECT_THAT(discovery_.FindByPid(100)->vcpus, IsEmpty());
}

// With a hole between plugged slots the rank among KVM's ids is not the cpu-index; names tell it.
TEST_F(DiscoveryTest, NamesGiveTheIndexOfWhatDebugfsFound) {
  AddQemu(100, {}, 2, true);
  tree_.AddThread(100, 111, "CPU 3/KVM", 1002);
  tree_.AddDebugfsVcpu(100, 2, 0, 110);
  tree_.AddDebugfsVcpu(100, 2, 6, 111);
  const auto vm = discovery_.FindByPid(100);
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_THAT(IndexesOf(*vm), ElementsAre(0, 3));
  EXPECT_THAT(KvmIdsOf(*vm), ElementsAre(0, 6));
}

// debugfs shows 0 for a vCPU before its first run: its name completes the set.
TEST_F(DiscoveryTest, RoutesCompleteEachOther) {
  AddQemu(100, {}, 2, true);
  tree_.AddDebugfsVcpu(100, 2, 0, 110);
  tree_.AddDebugfsVcpu(100, 2, 1, 0);
  const auto vm = discovery_.FindByPid(100);
  ASSERT_EQ(vm->vcpus.size(), 2u);
  EXPECT_EQ(vm->vcpus[0].found_by, FoundBy::kDebugfs);
  EXPECT_EQ(vm->vcpus[1].found_by, FoundBy::kThreadName);
}

// Descriptors tell ids, not whose: with one parked they cannot be matched.
TEST_F(DiscoveryTest, KvmIdsAreNotGuessed) {
  AddQemu(100, {}, 3, true);
  tree_.RemoveThread(100, 111);
  const auto vm = discovery_.FindByPid(100);
  EXPECT_THAT(IndexesOf(*vm), ElementsAre(0, 2));
  EXPECT_THAT(KvmIdsOf(*vm), ElementsAre(-1, -1));
  EXPECT_THAT(vm->notes, ElementsAre(HasSubstr("3 kvm-vcpu descriptors for 2 threads")));
}

TEST_F(DiscoveryTest, GuestTimeIsTheLastRoute) {
  AddQemu(100, {}, 2, false);
  tree_.AddThread(100, 111, "qemu-system-x86", 1002, 7);
  tree_.AddThread(100, 110, "qemu-system-x86", 1009, 3);
  const auto vm = discovery_.FindByPid(100);
  EXPECT_THAT(vm->vcpus, ElementsAre(Vcpu{0, 0, 111, 1002, FoundBy::kGuestTime, Proof::kFd},
                                     Vcpu{1, 1, 110, 1009, FoundBy::kGuestTime, Proof::kFd}));
  EXPECT_THAT(vm->notes, ElementsAre(HasSubstr("guest time")));
}

// Listed all the same, with the ways to get further.
TEST_F(DiscoveryTest, VcpusThatCannotBeFoundAreExplained) {
  AddQemu(100, {"-qmp", "unix:/run/q,server=on"}, 2, false);
  const auto vm = discovery_.FindByPid(100);
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_THAT(vm->vcpus, IsEmpty());
  EXPECT_THAT(vm->notes, ElementsAre(AllOf(HasSubstr("debug-threads=on"), HasSubstr("--tid"),
                                           HasSubstr("debugfs"), HasSubstr("unix:/run/q"))));
}

// Another user's QEMU: its command line and threads can be read, its descriptors cannot.
TEST_F(DiscoveryTest, WithoutDescriptorsTheProofIsTheRoute) {
  AddQemu(100, {"-name", "a"}, 2, true);
  tree_.HideDescriptors(100);
  auto vm = discovery_.FindByPid(100);
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_EQ(vm->accelerator, Accelerator::kKvm);
  EXPECT_EQ(vm->vcpus[0].proof, Proof::kName);
  EXPECT_EQ(vm->vcpus[0].kvm_id, std::nullopt);
  EXPECT_THAT(vm->notes, ElementsAre(HasSubstr("CAP_SYS_PTRACE")));

  tree_.AddDebugfsVcpu(100, 2, 0, 110);
  tree_.AddDebugfsVcpu(100, 2, 1, 111);
  vm = discovery_.FindByPid(100);
  EXPECT_EQ(vm->vcpus[0].proof, Proof::kDebugfs);
}

TEST_F(DiscoveryTest, TcgIsListedAndRefused) {
  tree_.AddProcess(100, "qemu-system-x86", {kQemu, "-name", "slow"}, {"/dev/null"});
  tree_.AddThread(100, 110, "CPU 0/TCG", 1001);
  const std::vector<Vm> vms = discovery_.FindAll();
  ASSERT_EQ(vms.size(), 1u);
  EXPECT_EQ(vms[0].accelerator, Accelerator::kTcg);
  EXPECT_THAT(vms[0].vcpus, IsEmpty());
  for (const auto& vm : {discovery_.FindByPid(100), discovery_.FindByName("slow")}) {
    EXPECT_EQ(vm.status().code(), Code::kFailedPrecondition);
    EXPECT_THAT(MessageOf(vm), AllOf(HasSubstr("'slow'"), HasSubstr("TCG")));
  }
  // Neither may its thread names pass for KVM where descriptors cannot be read.
  tree_.HideDescriptors(100);
  EXPECT_EQ(discovery_.FindByPid(100).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(discovery_.FindByTids(std::vector<pid_t>{110}).status().code(),
            Code::kFailedPrecondition);
}

// In its first moments a QEMU with KVM looks like one without: that is worth another try.
TEST_F(DiscoveryTest, AQemuThatIsStartingIsUnavailable) {
  tree_.AddProcess(100, "qemu-system-x86", {kQemu, "-enable-kvm"}, {"/dev/null"});
  EXPECT_EQ(discovery_.FindByPid(100).status().code(), Code::kUnavailable);
  EXPECT_EQ(discovery_.FindAll()[0].accelerator, Accelerator::kUnknown);
  tree_.AddLink(100, 5, kVmLink);
  EXPECT_TRUE(discovery_.FindByPid(100).ok());
}

TEST_F(DiscoveryTest, WhatIsNoVmmIsToldApart) {
  AddQemu(100, {}, 1, true);
  auto vm = discovery_.FindByPid(50);
  EXPECT_EQ(vm.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(vm), AllOf(HasSubstr("PID 50 (bash) is not a VMM"), Not(HasSubstr("\n"))));
  for (const pid_t pid : {999, 0, -5}) {
    vm = discovery_.FindByPid(pid);
    EXPECT_EQ(vm.status().code(), Code::kNotFound);
    EXPECT_THAT(MessageOf(vm), HasSubstr("PID " + std::to_string(pid)));
  }
  vm = discovery_.FindByPid(110);
  EXPECT_EQ(vm.status().code(), Code::kInvalidArgument) << "a thread is not its process";
  EXPECT_THAT(MessageOf(vm), HasSubstr("--pid 100"));
  tree_.HideDescriptors(50);
  vm = discovery_.FindByPid(50);
  EXPECT_EQ(vm.status().code(), Code::kPermissionDenied);
  EXPECT_THAT(MessageOf(vm), HasSubstr(kMayNotRead));
}

// The parent has not reaped it: it is in /proc and yet gone.
TEST_F(DiscoveryTest, AZombieHasEnded) {
  AddQemu(100, {"-name", "a"}, 1, true);
  const Vm vm = *discovery_.FindByPid(100);
  tree_.SetProcessState(100, "qemu-system-x86", 'Z', 1000);
  EXPECT_EQ(discovery_.FindByPid(100).status().code(), Code::kNotFound);
  EXPECT_EQ(discovery_.FindByName("a").status().code(), Code::kNotFound);
  EXPECT_EQ(discovery_.Rescan(vm).status().code(), Code::kNotFound);
}

TEST_F(DiscoveryTest, FindsByNameAndUuid) {
  AddQemu(100, {"-name", "a,,b", "-uuid", "5c7d0c7e-8b0a-4a35-9a3e-1f2d3c4b5a69"}, 1, true);
  AddQemu(200, {}, 1, true);
  EXPECT_EQ(discovery_.FindByName("a,b")->pid, 100);
  EXPECT_EQ(discovery_.FindByName("5C7D0C7E-8B0A-4A35-9A3E-1F2D3C4B5A69")->pid, 100);
  EXPECT_EQ(discovery_.FindByName("pid-200")->pid, 200);
  const auto none = discovery_.FindByName("c");
  EXPECT_EQ(none.status().code(), Code::kNotFound);
  EXPECT_THAT(MessageOf(none), AllOf(HasSubstr("'c'"), HasSubstr("'a,b' (PID 100)"),
                                     HasSubstr("'pid-200' (PID 200)")));
}

TEST_F(DiscoveryTest, TwoOfOneNameAreNotChosenBetween) {
  AddQemu(100, {"-name", "a"}, 1, true);
  AddQemu(200, {"-name", "a"}, 1, true);
  EXPECT_EQ(discovery_.FindAll().size(), 2u);
  const auto vm = discovery_.FindByName("a");
  EXPECT_EQ(vm.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(MessageOf(vm), AllOf(HasSubstr("PID 100"), HasSubstr("PID 200"), HasSubstr("--pid")));
}

TEST_F(DiscoveryTest, AnEmptyNameMatchesNothing) {
  AddQemu(100, {"-uuid", "00000000-0000-0000-0000-000000000000"}, 1, true);
  EXPECT_EQ(discovery_.FindByName("").status().code(), Code::kNotFound);
  EXPECT_EQ(discovery_.FindByName("00000000-0000-0000-0000-000000000000").status().code(),
            Code::kNotFound);
}

TEST_F(DiscoveryTest, GivenTidsKeepTheirOrder) {
  AddQemu(100, {"-name", "a"}, 3, false);
  const std::vector<pid_t> tids = {112, 110};
  const auto vm = discovery_.FindByTids(tids);
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_EQ(vm->name, "a");
  EXPECT_THAT(vm->vcpus,
              ElementsAre(Vcpu{0, std::nullopt, 112, 1002, FoundBy::kGiven, Proof::kFd},
                          Vcpu{1, std::nullopt, 110, 1002, FoundBy::kGiven, Proof::kFd}));
}

// The position says nothing where the VMM's own index is known.
TEST_F(DiscoveryTest, GivenTidsBearTheVmmsIndexes) {
  AddQemu(100, {"-name", "a"}, 3, true);
  const auto vm = discovery_.FindByTids(std::vector<pid_t>{112, 110});
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_THAT(IndexesOf(*vm), ElementsAre(0, 2));
  EXPECT_THAT(TidsOf(*vm), ElementsAre(110, 112));
}

TEST_F(DiscoveryTest, GivenTidsAreChecked) {
  AddQemu(100, {}, 2, true);
  AddQemu(200, {}, 2, true);
  const auto code = [this](std::vector<pid_t> tids) {
    return discovery_.FindByTids(tids).status().code();
  };
  EXPECT_EQ(code({110, 111}), Code::kOk);
  EXPECT_EQ(code({}), Code::kInvalidArgument);
  EXPECT_EQ(code({110, 110}), Code::kInvalidArgument);
  EXPECT_EQ(code({110, 210}), Code::kInvalidArgument);
  EXPECT_EQ(code({110, 999}), Code::kNotFound);
  EXPECT_EQ(code({-1}), Code::kNotFound);
  EXPECT_EQ(code({50}), Code::kFailedPrecondition);
  // Guest-only counters of a worker stand at zero and would look HALTED.
  EXPECT_EQ(code({101}), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(discovery_.FindByTids(std::vector<pid_t>{110, 210})),
              AllOf(HasSubstr("PID 100"), HasSubstr("PID 200")));
}

// init's own descriptors may not be read in a container either: it is not a VM for that.
TEST_F(DiscoveryTest, GivenTidsAreOfAVmmWhereDescriptorsMayNotBeRead) {
  tree_.AddProcess(1, "systemd", {"/sbin/init"}, {});
  tree_.HideDescriptors(1);
  const auto init = discovery_.FindByTids(std::vector<pid_t>{1});
  EXPECT_EQ(init.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(MessageOf(init), AllOf(HasSubstr("PID 1 (systemd)"), HasSubstr(kMayNotRead)));

  // A QEMU by its program, another VMM by the guest time of a thread.
  AddQemu(100, {}, 2, /*debug_threads=*/false);
  tree_.HideDescriptors(100);
  EXPECT_TRUE(discovery_.FindByTids(std::vector<pid_t>{110}).ok());
  tree_.AddProcess(200, "vmm", {"/usr/bin/vmm"}, {});
  tree_.AddThread(200, 210, "worker", 1003, /*guest_ticks=*/7);
  tree_.HideDescriptors(200);
  EXPECT_TRUE(discovery_.FindByTids(std::vector<pid_t>{210}).ok());
}

TEST_F(DiscoveryTest, DescendantsAreFoundThroughAnyGeneration) {
  AddQemu(300, {"-name", "grandchild"}, 1, true, 60);
  AddQemu(400, {"-name", "stranger"}, 1, true, 1);
  tree_.AddProcess(60, "launcher", {"sh"}, {}, 50);
  const std::vector<Vm> vms = discovery_.FindDescendants(50);
  ASSERT_EQ(vms.size(), 1u);
  EXPECT_EQ(vms[0].pid, 300);
  EXPECT_THAT(TidsOf(vms[0]), ElementsAre(310));
  EXPECT_EQ(discovery_.FindDescendants(300).size(), 1u) << "the command itself may be the VMM";
  EXPECT_THAT(discovery_.FindDescendants(777), IsEmpty());
}

// Names are shown on terminals and stored in protobuf strings.
TEST(CleanLabel, LetsOnlyPrintableUtf8Through) {
  EXPECT_EQ(CleanLabel("web-1 \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "web-1 \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(CleanLabel("a\nb\x1b[2J\x7f"), "a?b?[2J?");
  EXPECT_EQ(CleanLabel("\xc3"), "?");
  EXPECT_EQ(CleanLabel("\xff\xc0\x80"), "???");
  EXPECT_EQ(CleanLabel("\xed\xa0\x80"), "???") << "a surrogate";
  EXPECT_EQ(CleanLabel("\xf4\x90\x80\x80"), "????") << "beyond U+10FFFF";
  EXPECT_EQ(CleanLabel("\xc2\x9b"), "?") << "a C1 control";
}

}  // namespace
}  // namespace vcpulse::kvm

// The same VM again, later.
#include <sys/resource.h>

#include "tests/unit/kvm/discovery/discovery_fixture.h"

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Worker threads come and go: that is no change.
TEST_F(DiscoveryTest, RescanOfAnUnchangedVmGivesTheSame) {
  AddQemu(100, {"-name", "a"}, 2, true);
  const Vm vm = *discovery_.FindByPid(100);
  EXPECT_EQ(*discovery_.Rescan(vm), vm);
  tree_.RemoveThread(100, 101);
  tree_.AddThread(100, 150, "worker", 5000);
  tree_.AddThread(100, 151, "qemu-system-x86", 5000);
  EXPECT_EQ(*discovery_.Rescan(vm), vm);
}

TEST_F(DiscoveryTest, RescanSeesPlugAndUnplug) {
  AddQemu(100, {}, 2, true);
  const Vm two = *discovery_.FindByPid(100);
  tree_.AddThread(100, 140, "CPU 2/KVM", 4000);
  tree_.AddLink(100, 40, "anon_inode:kvm-vcpu:2");
  const Vm three = *discovery_.Rescan(two);
  EXPECT_THAT(TidsOf(three), ElementsAre(110, 111, 140));
  EXPECT_THAT(three.notes, IsEmpty());
  tree_.RemoveThread(100, 111);
  const Vm rest = *discovery_.Rescan(three);
  EXPECT_THAT(TidsOf(rest), ElementsAre(110, 140));
  EXPECT_THAT(IndexesOf(rest), ElementsAre(0, 2)) << "each keeps its index";
}

TEST_F(DiscoveryTest, RescanSeesAPlugThroughDebugfs) {
  AddQemu(100, {}, 2, false);
  tree_.AddDebugfsVcpu(100, 2, 0, 110);
  tree_.AddDebugfsVcpu(100, 2, 4, 111);
  const Vm two = *discovery_.FindByPid(100);
  ASSERT_THAT(IndexesOf(two), ElementsAre(0, 1));
  tree_.AddThread(100, 140, "qemu-system-x86", 4000);
  tree_.AddDebugfsVcpu(100, 2, 2, 140);
  const Vm three = *discovery_.Rescan(two);
  // Its rank is 1, which another vCPU bears already.
  EXPECT_THAT(TidsOf(three), ElementsAre(110, 111, 140));
  EXPECT_THAT(IndexesOf(three), ElementsAre(0, 1, 2));
  EXPECT_THAT(KvmIdsOf(three), ElementsAre(0, 4, 2));
}

// The kernel reuses TIDs: the same number with another start time is another thread.
TEST_F(DiscoveryTest, RescanTellsAReusedTid) {
  AddQemu(100, {}, 2, true);
  const Vm vm = *discovery_.FindByPid(100);
  tree_.AddThread(100, 111, "worker", 9000);
  EXPECT_THAT(TidsOf(*discovery_.Rescan(vm)), ElementsAre(110));
  tree_.AddThread(100, 111, "CPU 1/KVM", 9000);
  const Vm other = *discovery_.Rescan(vm);
  EXPECT_THAT(TidsOf(other), ElementsAre(110, 111));
  EXPECT_EQ(other.vcpus[1].start_time_ticks, 9000u);
}

TEST_F(DiscoveryTest, RescanTellsEndAndReuseOfThePid) {
  AddQemu(100, {"-name", "a"}, 1, true);
  const Vm vm = *discovery_.FindByPid(100);
  tree_.SetProcessState(100, "qemu-system-x86", 'S', 7777);
  const auto reused = discovery_.Rescan(vm);
  EXPECT_EQ(reused.status().code(), Code::kNotFound);
  EXPECT_THAT(MessageOf(reused), HasSubstr("'a' (PID 100) has ended"));
  tree_.RemoveProcess(100);
  EXPECT_EQ(discovery_.Rescan(vm).status().code(), Code::kNotFound);
}

TEST_F(DiscoveryTest, RescanWithoutDescriptorsDoesNotSayThatTheVmHasEnded) {
  AddQemu(100, {"-name", "a"}, 1, true);
  const Vm vm = *discovery_.FindByPid(100);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto now = discovery_.Rescan(vm);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(now.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(MessageOf(now), HasSubstr("cannot see whether VM 'a' (PID 100) has changed: "));
  EXPECT_EQ(*discovery_.Rescan(vm), vm);
}

TEST_F(DiscoveryTest, RescanLooksForNoOthersThanTheGivenTids) {
  AddQemu(100, {}, 3, true);
  const Vm vm = *discovery_.FindByTids(std::vector<pid_t>{111, 112});
  EXPECT_EQ(*discovery_.Rescan(vm), vm);
  tree_.RemoveThread(100, 111);
  const Vm rest = *discovery_.Rescan(vm);
  EXPECT_THAT(TidsOf(rest), ElementsAre(112));
  EXPECT_THAT(IndexesOf(rest), ElementsAre(2));
  tree_.RemoveThread(100, 112);
  EXPECT_EQ(discovery_.Rescan(rest).status().code(), Code::kNotFound);
}

// A VM seen in its first moments has no vCPU threads yet, or none with descriptors.
TEST_F(DiscoveryTest, RescanCompletesAVmThatWasStarting) {
  tree_.AddProcess(100, "qemu-system-x86", {kQemu, "-enable-kvm"}, {"/dev/null"});
  const Vm starting = discovery_.FindAll()[0];
  tree_.AddThread(100, 110, "CPU 0/KVM", 1002);
  const Vm unproven = *discovery_.Rescan(starting);
  EXPECT_THAT(TidsOf(unproven), ElementsAre(110));
  EXPECT_EQ(unproven.vcpus[0].proof, Proof::kName);
  tree_.AddLink(100, 5, kVmLink);
  tree_.AddLink(100, 6, "anon_inode:kvm-vcpu:0");
  const Vm proven = *discovery_.Rescan(unproven);
  EXPECT_EQ(proven.accelerator, Accelerator::kKvm);
  EXPECT_EQ(proven.vcpus[0].proof, Proof::kFd);
  EXPECT_THAT(proven.notes, IsEmpty());
}

}  // namespace
}  // namespace vcpulse::kvm

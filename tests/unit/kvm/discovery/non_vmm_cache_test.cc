#include "kvm/discovery/non_vmm_cache.h"

#include <filesystem>

#include "tests/unit/kvm/discovery/discovery_fixture.h"

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TaskStat StartedAt(uint64_t ticks) {
  TaskStat stat;
  stat.start_time_ticks = ticks;
  return stat;
}

TEST(NonVmmCache, OfThePastTenSecondsAreLookedAtEachTime) {
  NonVmmCache non_vmms;
  const TaskStat stat = StartedAt(5);
  int looks = 0;
  for (int second = 0; second <= 60; ++second) {
    non_vmms.BeginRound(absl::Seconds(1000 + second));
    if (!non_vmms.MayBePassedOver(7, stat, "bash")) {
      ++looks;
      non_vmms.Remember(7, stat, "bash", /*vmm=*/false);
    }
    non_vmms.EndRound();
    if (second == 10) {
      EXPECT_EQ(looks, 11);
    }
  }
  // Then every 22 s for this PID: at 32 and 54.
  EXPECT_EQ(looks, 13);
}

TEST(NonVmmCache, AnotherStartTimeOrNameIsAnotherProcess) {
  NonVmmCache non_vmms;
  TaskStat kernel_thread = StartedAt(5);  // needs no time to prove itself
  kernel_thread.kernel_thread = true;
  non_vmms.BeginRound(absl::Seconds(1));
  non_vmms.Remember(7, kernel_thread, "bash", /*vmm=*/false);
  EXPECT_TRUE(non_vmms.MayBePassedOver(7, StartedAt(5), "bash"));
  EXPECT_FALSE(non_vmms.MayBePassedOver(7, StartedAt(6), "bash")) << "a PID used anew";
  non_vmms.Remember(7, kernel_thread, "bash", /*vmm=*/false);
  EXPECT_FALSE(non_vmms.MayBePassedOver(7, StartedAt(5), "qemu-system-x86")) << "execve";
  EXPECT_FALSE(non_vmms.MayBePassedOver(8, StartedAt(5), "bash"));
}

TEST(NonVmmCache, ForgetsThoseThatHaveEnded) {
  NonVmmCache non_vmms;
  for (int round = 0; round < 500; ++round) {
    non_vmms.BeginRound(absl::Seconds(round));
    non_vmms.Remember(1, StartedAt(1), "init", /*vmm=*/false);
    non_vmms.Remember(1000 + round, StartedAt(5), "sh", /*vmm=*/false);
    non_vmms.EndRound();
  }
  EXPECT_EQ(non_vmms.size(), 2u);
}

class FindOthersTest : public DiscoveryTest {
 protected:
  std::vector<pid_t> Find(int second, const std::vector<Vm>& known = {}) {
    std::vector<pid_t> pids;
    for (const Vm& vm : discovery_.FindOthers(known, non_vmms_, absl::Seconds(second))) {
      pids.push_back(vm.pid);
    }
    return pids;
  }

  NonVmmCache non_vmms_;
};

TEST_F(FindOthersTest, LeavesOutTheKnownInstancesAlone) {
  AddQemu(100, {}, 1, true);
  AddQemu(200, {}, 1, true);
  EXPECT_THAT(Find(0), ElementsAre(100, 200));
  std::vector<Vm> known = discovery_.FindAll();
  EXPECT_THAT(Find(1, known), IsEmpty());
  known[0].start_time_ticks -= 1;  // that one has ended, its PID is used anew
  EXPECT_THAT(Find(2, known), ElementsAre(100));
}

// A process that opens /dev/kvm late is found late, one that calls execve soon.
TEST_F(FindOthersTest, AStrangerMayBecomeAVmm) {
  EXPECT_THAT(Find(0), IsEmpty());
  EXPECT_THAT(Find(11), IsEmpty());
  tree_.AddLink(50, 7, kVmLink);
  EXPECT_THAT(Find(12), IsEmpty()) << "PID 50 was looked at a second ago";
  EXPECT_THAT(Find(12 + 30), ElementsAre(50));

  EXPECT_THAT(Find(43), ElementsAre(50));
  std::filesystem::remove(tree_.Path("proc/50/fd/7"));
  EXPECT_THAT(Find(44), IsEmpty());
  EXPECT_THAT(Find(50), IsEmpty());
  tree_.AddLink(50, 7, kVmLink);
  EXPECT_THAT(Find(51), IsEmpty());
  tree_.SetProcessState(50, "qemu-system-x86", 'S', 1000);  // another name: execve
  int rounds = 0;
  while (Find(51).empty() && rounds < 10) ++rounds;
  EXPECT_LT(rounds, 5) << "checked in every fifth round";
}

// A Firecracker waits on its API socket, for hours where nobody asks, before it creates its VM.
TEST_F(FindOthersTest, AVmmWithoutAVmIsLookedAtInEachRound) {
  tree_.AddProcess(60, "firecracker", {"/usr/bin/firecracker", "--api-sock", "/run/fc.sock"},
                   {"/dev/null"});
  for (int second = 0; second < 100; second += 7) EXPECT_THAT(Find(second), IsEmpty());
  tree_.AddLink(60, 7, kVmLink);
  EXPECT_THAT(Find(100), ElementsAre(60));
}

TEST(NonVmmCache, ASettledOneIsTrustedInFourOfFiveRounds) {
  NonVmmCache non_vmms;
  TaskStat kernel_thread = StartedAt(5);
  kernel_thread.kernel_thread = true;
  non_vmms.BeginRound(absl::ZeroDuration());
  non_vmms.Remember(7, kernel_thread, "kworker", /*vmm=*/false);
  non_vmms.Remember(8, StartedAt(6), "bash", /*vmm=*/false);  // new: always checked
  non_vmms.EndRound();
  int trusted = 0;
  for (int round = 0; round < 10; ++round) {
    non_vmms.BeginRound(absl::Seconds(1));
    if (non_vmms.IsTrusted(7)) {
      ++trusted;
    } else {
      EXPECT_TRUE(non_vmms.MayBePassedOver(7, kernel_thread, "kworker"));
    }
    EXPECT_FALSE(non_vmms.IsTrusted(8));
    non_vmms.EndRound();
  }
  EXPECT_EQ(trusted, 8);
  EXPECT_EQ(non_vmms.size(), 1u) << "8 was not asked for";
  non_vmms.BeginRound(absl::Minutes(1));
  EXPECT_FALSE(non_vmms.IsTrusted(7)) << "due to be looked at";
}

}  // namespace
}  // namespace vcpulse::kvm

#include "kvm/competitors/wait_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr pid_t kVcpu = 7;
constexpr pid_t kHog = 8;
constexpr pid_t kOther = 9;

class WaitLedgerTest : public ::testing::Test {
 protected:
  // As the kernel tells of it: the CPU's switch, then the thread's.
  void Preempted(uint64_t at_ns, int cpu, pid_t by) {
    ledger_.Switched(at_ns, cpu, kVcpu, by);
    ledger_.LostCpu(at_ns, cpu, true);
  }
  void Sleeps(uint64_t at_ns, int cpu, pid_t next) {
    ledger_.Switched(at_ns, cpu, kVcpu, next);
    ledger_.LostCpu(at_ns, cpu, false);
  }
  void Gets(uint64_t at_ns, int cpu, pid_t from) {
    ledger_.Switched(at_ns, cpu, from, kVcpu);
    ledger_.GotCpu(at_ns + 1, cpu);
  }

  WaitLedger ledger_{kVcpu};
};

TEST_F(WaitLedgerTest, AThreadThatIsPreemptedWaitsForThoseThatRun) {
  Preempted(100, 3, kHog);
  ledger_.Switched(130, 3, kHog, kOther);
  ledger_.Switched(140, 3, kOther, kHog);
  Gets(145, 3, kHog);
  Preempted(200, 3, kOther);
  ledger_.End(211);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 35), Pair(kOther, 21)));
  EXPECT_EQ(ledger_.unattributed_ns(), 0u);
}

TEST_F(WaitLedgerTest, AThreadThatSleepsDoesNotWait) {
  Sleeps(100, 3, kHog);
  ledger_.Switched(150, 3, kHog, kOther);
  ledger_.Woken(160, 3);
  Gets(175, 3, kOther);
  ledger_.End(300);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kOther, 15)));
}

// A wake-up that comes while it still runs or waits begins nothing.
TEST_F(WaitLedgerTest, AWakeUpOfARunnableThreadChangesNothing) {
  Gets(100, 3, kHog);
  ledger_.Woken(110, 3);
  Preempted(120, 3, kHog);
  ledger_.Woken(125, 3);
  ledger_.End(130);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 10)));
}

// As where a quota of the CPU is used up.
TEST_F(WaitLedgerTest, ItMayWaitForAnIdleCpu) {
  Preempted(100, 3, 0);
  ledger_.End(190);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(0, 90)));
}

TEST_F(WaitLedgerTest, OtherCpusAreNoneOfItsBusiness) {
  Preempted(100, 3, kHog);
  ledger_.Switched(110, 4, kOther, kHog);
  ledger_.Runs(120, 4, kOther);
  ledger_.Missed(130, 4);
  ledger_.End(150);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 50)));
}

// Its own switches say so, whether that CPU is watched or not.
TEST_F(WaitLedgerTest, WhatItRunsOrSleepsElsewhereIsNoWait) {
  Preempted(100, 3, kHog);
  ledger_.GotCpu(130, 4);
  ledger_.LostCpu(140, 4, false);
  ledger_.Switched(900, 3, kHog, kOther);
  ledger_.GotCpu(950, 4);
  ledger_.LostCpu(960, 4, true);  // nobody watches who has it
  ledger_.GotCpu(975, 3);
  ledger_.End(1000);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 30)));
  EXPECT_EQ(ledger_.unattributed_ns(), 15u);
}

TEST_F(WaitLedgerTest, ItMayBeMovedWhileItWaits) {
  Preempted(100, 3, kHog);
  ledger_.Runnable(120, 3);  // still there
  ledger_.Runnable(150, 4);
  ledger_.End(170);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 50)));
  EXPECT_EQ(ledger_.unattributed_ns(), 20u);  // nobody was seen on CPU 4
}

// A hog that is never switched from: who runs is seen now and then.
TEST_F(WaitLedgerTest, WhoeverRunsThereKeepsItWaiting) {
  ledger_.Runnable(100, 3);
  ledger_.Runs(120, 3, kHog);
  ledger_.Runs(140, 3, kHog);
  ledger_.End(150);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 50)));
}

TEST_F(WaitLedgerTest, ASwitchBetweenOthersShowsThatItWaits) {
  ledger_.Runnable(100, 3);
  ledger_.Switched(130, 3, kHog, kOther);
  ledger_.End(150);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 30), Pair(kOther, 20)));
}

TEST_F(WaitLedgerTest, ARunnableThreadMayAsWellRun) {
  ledger_.Runnable(100, 3);
  ledger_.Runs(120, 3, kVcpu);
  Sleeps(140, 3, kHog);
  ledger_.End(200);
  EXPECT_THAT(ledger_.waited_ns(), IsEmpty());
  EXPECT_EQ(ledger_.unattributed_ns(), 0u);
}

// It was woken up where nobody looked.
TEST_F(WaitLedgerTest, ASleeperThatIsRunnableWasWokenUp) {
  Sleeps(100, 3, kHog);
  ledger_.Runnable(120, 3);
  ledger_.Runs(130, 3, kHog);
  ledger_.End(140);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 20)));
}

// Between the CPU's switch and the thread's: it waits for nobody any more.
TEST_F(WaitLedgerTest, ItDoesNotWaitForItself) {
  Preempted(100, 3, kHog);
  ledger_.Switched(120, 3, kHog, kVcpu);
  ledger_.GotCpu(125, 3);
  ledger_.End(130);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 20)));
}

TEST_F(WaitLedgerTest, WhatWasMissedIsNobodys) {
  Preempted(100, 3, kHog);
  ledger_.Missed(150, 3);
  ledger_.Switched(170, 3, kOther, kHog);
  ledger_.End(180);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 10), Pair(kOther, 20)));
  EXPECT_EQ(ledger_.unattributed_ns(), 50u);
}

}  // namespace
}  // namespace vcpulse::kvm

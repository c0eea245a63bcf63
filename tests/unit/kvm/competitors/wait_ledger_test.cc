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
  WaitLedger ledger_{kVcpu};
};

TEST_F(WaitLedgerTest, AThreadThatIsPreemptedWaitsForThoseThatRun) {
  ledger_.Switched(100, 3, kVcpu, true, kHog);
  ledger_.Switched(130, 3, kHog, true, kOther);
  ledger_.Switched(140, 3, kOther, false, kHog);
  ledger_.Switched(145, 3, kHog, true, kVcpu);
  ledger_.Switched(200, 3, kVcpu, true, kOther);
  ledger_.End(201);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 35), Pair(kOther, 11)));
  EXPECT_EQ(ledger_.unseen_ns(), 0u);
}

TEST_F(WaitLedgerTest, AThreadThatSleepsDoesNotWait) {
  ledger_.Switched(100, 3, kVcpu, false, kHog);
  ledger_.Switched(150, 3, kHog, true, kOther);
  ledger_.Woken(160, 3);
  ledger_.Switched(175, 3, kOther, true, kVcpu);
  ledger_.End(300);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kOther, 15)));
}

// A wake-up that comes while it still runs or waits begins nothing.
TEST_F(WaitLedgerTest, AWakeUpOfARunnableThreadChangesNothing) {
  ledger_.Switched(100, 3, kHog, true, kVcpu);
  ledger_.Woken(110, 3);
  ledger_.Switched(120, 3, kVcpu, true, kHog);
  ledger_.Woken(125, 3);
  ledger_.End(130);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 10)));
}

// As where a quota of the CPU is used up.
TEST_F(WaitLedgerTest, ItMayWaitForAnIdleCpu) {
  ledger_.Switched(100, 3, kVcpu, true, 0);
  ledger_.End(190);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(0, 90)));
}

TEST_F(WaitLedgerTest, OtherCpusAreNoneOfItsBusiness) {
  ledger_.Switched(100, 3, kVcpu, true, kHog);
  ledger_.Switched(110, 4, kOther, true, kHog);
  ledger_.Runs(120, 4, kOther);
  ledger_.Missed(130, 4);
  ledger_.End(150);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 50)));
}

TEST_F(WaitLedgerTest, ItMayGetAnotherCpu) {
  ledger_.Switched(50, 4, kOther, true, kOther);
  ledger_.Switched(100, 3, kVcpu, true, kHog);
  ledger_.Switched(130, 4, kOther, true, kVcpu);  // it was moved
  ledger_.Switched(140, 4, kVcpu, true, kOther);
  ledger_.End(145);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 30), Pair(kOther, 5)));
}

TEST_F(WaitLedgerTest, ItMayBeMovedWhileItWaits) {
  ledger_.Switched(100, 3, kVcpu, true, kHog);
  ledger_.Runnable(120, 3);  // still there
  ledger_.Runnable(150, 4);
  ledger_.End(170);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 50)));
  EXPECT_EQ(ledger_.unseen_ns(), 20u);  // nobody was seen on CPU 4
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
  ledger_.Switched(130, 3, kHog, true, kOther);
  ledger_.End(150);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 30), Pair(kOther, 20)));
}

TEST_F(WaitLedgerTest, ARunnableThreadMayAsWellRun) {
  ledger_.Runnable(100, 3);
  ledger_.Runs(120, 3, kVcpu);
  ledger_.Switched(140, 3, kVcpu, false, kHog);
  ledger_.End(200);
  EXPECT_THAT(ledger_.waited_ns(), IsEmpty());
  EXPECT_EQ(ledger_.unseen_ns(), 0u);
}

// It was woken up where nobody looked.
TEST_F(WaitLedgerTest, ASleeperThatIsRunnableWasWokenUp) {
  ledger_.Switched(100, 3, kVcpu, false, kHog);
  ledger_.Runnable(120, 3);
  ledger_.Runs(130, 3, kHog);
  ledger_.End(140);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 20)));
}

TEST_F(WaitLedgerTest, WhatWasMissedIsNobodys) {
  ledger_.Switched(100, 3, kVcpu, true, kHog);
  ledger_.Missed(150, 3);
  ledger_.Switched(150, 3, kOther, true, kHog);
  ledger_.Switched(170, 3, kHog, true, kOther);
  ledger_.Switched(180, 3, kVcpu, true, kHog);
  ledger_.End(185);
  EXPECT_THAT(ledger_.waited_ns(), ElementsAre(Pair(kHog, 5)));
  EXPECT_EQ(ledger_.unseen_ns(), 50u);
}

// It ran when it was last heard of, and another one runs now: what was between is not known.
TEST_F(WaitLedgerTest, ARunnerThatIsGoneIsUnknown) {
  ledger_.Switched(100, 3, kHog, true, kVcpu);
  ledger_.Runs(120, 3, kHog);
  ledger_.End(200);
  EXPECT_THAT(ledger_.waited_ns(), IsEmpty());
}

}  // namespace
}  // namespace vcpulse::kvm

// Where a sample's values come from: what the kernel keeps of a thread, read(2), or the last
// sample.

#include "monitor/sampler/vcpu_source.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/fakes/fake_keeper.h"
#include "tests/unit/monitor/sampler/sampler_fixture.h"

namespace vcpulse::sampler {
namespace {

using core::ThreadState;

constexpr int64_t kStart_ns = 5'000'000'000;

class VcpuSourceTest : public SamplerTest {
 protected:
  // Ticks at this time after the start; the sample of the one vCPU.
  core::VcpuSample At(int64_t after_ns) {
    fakes::FakeClock::now_ns = kStart_ns + after_ns;
    sampler_.TakeCommands();
    sampler_.Tick(tick_++, kStart_ns + after_ns, kStart_ns + after_ns);
    Handover handover;
    core::VcpuSample seen;
    last_ = false;
    EXPECT_TRUE(sampler_.Take(handover));
    if (handover.sample == nullptr) return seen;
    seen = handover.sample->vcpus.at(0);
    last_ = handover.last;
    handover.epoch->Recycle(handover.sample);
    return seen;
  }

  void Begin(kvm::ThreadKeeper* keeper) {
    vm_.keeper = keeper;
    epoch_ = vm_.StartEpoch(1, 1, 4);
    sampler_.Add(epoch_.get());
  }

  kvm::KeptRecord& record() { return keeper_.threads[11].records[0]; }
  void Keep(uint32_t state, int64_t since_ns, int64_t taken_ns, uint64_t cycles) {
    kvm::KeptRecord& kept = record();
    kept.sequence += 2;
    kept.state = state;
    kept.since_ns = static_cast<uint64_t>(kStart_ns + since_ns);
    kept.taken_ns = static_cast<uint64_t>(kStart_ns + taken_ns);
    kept.enabled_ns = kept.running_ns = cycles;
    kept.run_ns = 10 * cycles;
    kept.run_delay_ns = 77;
    kept.counts[0] = cycles;
    kept.counts[1] = cycles / 2;
  }
  int reads() { return vm_.group(0).reads; }

  fakes::FakeKeeper keeper_;
  fakes::SampledVm vm_{perf_, proc_, "web", 10, 11, 1};
  std::unique_ptr<Epoch> epoch_;
  uint64_t tick_ = 0;
  bool last_ = false;
};

TEST_F(VcpuSourceTest, AThreadThatRunsHasTheValuesOfItsLastSchedulerTick) {
  Begin(&keeper_);
  Keep(kvm::KEPT_RUNNING, 0, 1'000'000, 900);
  const core::VcpuSample seen = At(4'000'000);
  EXPECT_EQ(reads(), 0);
  EXPECT_EQ(seen.read_begin_ns, kStart_ns + 1'000'000);
  EXPECT_EQ(seen.read_end_ns, kStart_ns + 1'000'000);
  EXPECT_EQ(seen.counts[0], 900u);
  EXPECT_EQ(seen.counts[1], 450u);
  EXPECT_EQ(seen.time_enabled_ns, 900u);
  EXPECT_EQ(seen.time_running_ns, 900u);
  EXPECT_TRUE(seen.has_scheduler_times);
  EXPECT_EQ(seen.run_ns, 9000u);
  EXPECT_EQ(seen.run_delay_ns, 77u);
}

TEST_F(VcpuSourceTest, OneOffItsCpuHasThoseOfNow) {
  Begin(&keeper_);
  Keep(kvm::KEPT_BLOCKED, 1'000'000, 1'000'000, 900);
  At(2'000'000);
  const core::VcpuSample seen = At(900'000'000);
  EXPECT_EQ(reads(), 0);
  EXPECT_GE(seen.read_begin_ns, kStart_ns + 900'000'000);
  EXPECT_EQ(seen.read_begin_ns, seen.read_end_ns);
  EXPECT_EQ(seen.counts[0], 900u);
  EXPECT_EQ(seen.run_delay_ns, 77u);
  EXPECT_EQ(seen.state, ThreadState::kBlocked);
}

// It blocked between the clock's reading and the record's: then its values are of that instant.
TEST_F(VcpuSourceTest, NoValueIsOlderThanItsState) {
  Begin(&keeper_);
  Keep(kvm::KEPT_BLOCKED, 3'000'000, 3'000'000, 900);
  EXPECT_EQ(At(2'000'000).read_end_ns, kStart_ns + 3'000'000);
}

TEST_F(VcpuSourceTest, AWaitThatGoesOnCountsUntilNow) {
  Begin(&keeper_);
  Keep(kvm::KEPT_WAITING, 1'000'000, 1'000'000, 900);
  const core::VcpuSample first = At(2'000'000);
  EXPECT_NEAR(static_cast<double>(first.run_delay_ns), 77 + 1e6, 1000);
  const core::VcpuSample seen = At(31'000'000);
  EXPECT_NEAR(static_cast<double>(seen.run_delay_ns), 77 + 30e6, 1000);
  EXPECT_EQ(seen.run_ns, 9000u);
  EXPECT_EQ(seen.state, ThreadState::kRunnable);
  EXPECT_EQ(reads(), 0);
}

// It was at rest until a moment ago: no wait is in its times.
TEST_F(VcpuSourceTest, OneThatJustGotItsCpuWasNotWaiting) {
  Begin(&keeper_);
  Keep(kvm::KEPT_BLOCKED, 1'000'000, 1'000'000, 900);
  At(2'000'000);
  Keep(kvm::KEPT_RUNNING, 11'900'000, 11'900'000, 900);
  EXPECT_EQ(At(12'000'000).state, ThreadState::kBlocked);
  Keep(kvm::KEPT_BLOCKED, 13'000'000, 13'000'000, 900);
  At(22'000'000);
  Keep(kvm::KEPT_WAITING, 31'900'000, 13'000'000, 900);
  EXPECT_EQ(At(32'000'000).state, ThreadState::kBlocked);
}

// A CPU without a scheduler tick (nohz_full) makes nothing new.
TEST_F(VcpuSourceTest, WhatIsTooOldIsReadAtEachTick) {
  Begin(&keeper_);
  vm_.Ran(0, 5000, 6000, 7000);
  Keep(kvm::KEPT_RUNNING, 0, 1'000'000, 900);
  const core::VcpuSample seen = At(31'000'000);
  EXPECT_EQ(reads(), 1);
  EXPECT_EQ(seen.counts[0], 6000u);
  EXPECT_GT(seen.read_end_ns, kStart_ns + 31'000'000);
  EXPECT_NEAR(static_cast<double>(seen.run_ns), 9000 + 30e6, 1000);
  At(41'000'000);
  EXPECT_EQ(reads(), 2);
  // The tick is back.
  Keep(kvm::KEPT_RUNNING, 0, 50'000'000, 9999);
  EXPECT_EQ(At(51'000'000).counts[0], 9999u);
  EXPECT_EQ(reads(), 2);
}

// What was read by read(2) is newer than the record, which is new enough.
TEST_F(VcpuSourceTest, NoSampleGoesBackBehindARead) {
  Begin(&keeper_);
  vm_.Ran(0, 5000, 6000, 7000);
  Keep(kvm::KEPT_RUNNING, 0, 1'000'000, 900);
  record().sequence |= 1;  // the program is at work on it
  const core::VcpuSample seen = At(4'000'000);
  ASSERT_EQ(reads(), 1);
  record().sequence += 1;
  const core::VcpuSample again = At(8'000'000);
  EXPECT_EQ(reads(), 1);
  EXPECT_EQ(again.read_end_ns, seen.read_end_ns);
  EXPECT_EQ(again.counts[0], 6000u);
}

// What it is at the end of an interval is not what it was in it.
TEST_F(VcpuSourceTest, OneThatWaitedForMostOfAnIntervalWasRunnable) {
  for (const uint32_t at_end : {kvm::KEPT_RUNNING, kvm::KEPT_BLOCKED, kvm::KEPT_WAITING}) {
    Begin(&keeper_);
    Keep(kvm::KEPT_WAITING, 1'000'000, 1'000'000, 900);
    At(2'000'000);
    Keep(at_end, 11'500'000, 11'500'000, 900);
    record().run_delay_ns = 77 + 10'500'000;
    EXPECT_EQ(At(12'000'000).state, ThreadState::kRunnable) << at_end;
    Keep(kvm::KEPT_BLOCKED, 12'100'000, 12'100'000, 900);
    record().run_delay_ns = 77 + 10'600'000;
    EXPECT_EQ(At(22'000'000).state, ThreadState::kBlocked) << at_end;
    sampler_.Retire(epoch_.get());
    sampler_.TakeCommands();
    Handover retired;
    while (sampler_.Take(retired)) {
    }
  }
}

// schedstat has no wait that goes on.
TEST_F(VcpuSourceTest, SchedulerTimesNeverGoBack) {
  Begin(&keeper_);
  vm_.SetScheduling(0, 9000, 77);
  Keep(kvm::KEPT_WAITING, 1'000'000, 1'000'000, 900);
  const core::VcpuSample before = At(11'000'000);
  record().sequence |= 1;
  const core::VcpuSample seen = At(12'000'000);
  EXPECT_EQ(seen.run_delay_ns, before.run_delay_ns);
  EXPECT_EQ(seen.run_ns, before.run_ns);
}

TEST_F(VcpuSourceTest, OneAtRestIsNotLookedUpUntilSomethingHappensToIt) {
  Begin(&keeper_);
  At(0);
  EXPECT_EQ(At(10'000'000).state, ThreadState::kBlocked);  // `stat` has said so
  const int before = reads();
  const core::VcpuSample seen = At(3'600'000'000'000);
  EXPECT_EQ(reads(), before);
  EXPECT_GE(seen.read_end_ns, kStart_ns + 3'600'000'000'000);
  EXPECT_EQ(seen.state, ThreadState::kBlocked);
  Keep(kvm::KEPT_WAITING, 3'600'001'000'000, 0, 0);
  EXPECT_EQ(At(3'600'005'000'000).state, ThreadState::kRunnable);
}

// It went to sleep after the tick's clock was read, so that its values are of a later instant.
TEST_F(VcpuSourceTest, NoSampleGoesBackBehindARest) {
  Begin(&keeper_);
  Keep(kvm::KEPT_BLOCKED, 12'000'000, 12'000'000, 900);
  const core::VcpuSample seen = At(10'000'000);
  ASSERT_EQ(seen.read_end_ns, kStart_ns + 12'000'000);
  EXPECT_EQ(At(11'000'000).read_end_ns, seen.read_end_ns);
  EXPECT_GE(At(13'000'000).read_end_ns, kStart_ns + 13'000'000);
}

// It has waited since it was held, so there are no values; `stat` had said that it slept.
TEST_F(VcpuSourceTest, TheFirstWaitOfOneAtRestIsNoRest) {
  Begin(&keeper_);
  At(0);
  EXPECT_EQ(At(10'000'000).state, ThreadState::kBlocked);
  Keep(kvm::KEPT_WAITING, 15'000'000, 0, 0);
  record().taken_ns = 0;
  vm_.SetState(0, 'R');
  EXPECT_EQ(At(20'000'000).state, ThreadState::kRunnable);
  EXPECT_EQ(At(30'000'000).state, ThreadState::kRunnable);
}

// `stat` may call a thread asleep that is about to sleep, and runs.
TEST_F(VcpuSourceTest, OneThatRunsIsNotAtRestWhateverStatSays) {
  Begin(&keeper_);
  Keep(kvm::KEPT_RUNNING, 1'000'000, 0, 0);
  record().taken_ns = 0;
  At(10'000'000);
  At(20'000'000);
  const int before = reads();
  At(30'000'000);
  EXPECT_EQ(reads(), before + 1);
}

TEST_F(VcpuSourceTest, OneAtRestIsReadWhereAnotherHasTakenOverItsRecord) {
  Begin(&keeper_);
  Keep(kvm::KEPT_BLOCKED, 1'000'000, 1'000'000, 900);
  At(2'000'000);
  keeper_.threads[11].is_current = false;
  At(12'000'000);
  EXPECT_EQ(reads(), 1);
}

TEST_F(VcpuSourceTest, OneWithoutValuesIsRead) {
  Begin(&keeper_);
  Keep(kvm::KEPT_WAITING, 1'000'000, 1'000'000, 900);
  record().taken_ns = 0;
  At(2'000'000);
  EXPECT_EQ(reads(), 1);
}

TEST_F(VcpuSourceTest, AThreadThatHasExitedEndsItsEpoch) {
  Begin(&keeper_);
  Keep(kvm::KEPT_EXITED, 1'000'000, 1'000'000, 900);
  EXPECT_EQ(At(2'000'000).state, ThreadState::kExited);
  EXPECT_TRUE(last_);
}

TEST_F(VcpuSourceTest, ARecordThatAnotherHasTakenOverSaysNothing) {
  Begin(&keeper_);
  Keep(kvm::KEPT_BLOCKED, 1'000'000, 1'000'000, 900);
  keeper_.threads[11].is_current = false;
  At(2'000'000);
  EXPECT_EQ(reads(), 1);
}

// The writer is at work, or was stopped in the middle.
TEST_F(VcpuSourceTest, AHalfWrittenRecordSaysNothing) {
  Begin(&keeper_);
  Keep(kvm::KEPT_BLOCKED, 1'000'000, 1'000'000, 900);
  record().sequence |= 1;
  At(2'000'000);
  EXPECT_EQ(reads(), 1);
}

TEST_F(VcpuSourceTest, AnEpochThatEndsGivesItsThreadsBack) {
  Begin(&keeper_);
  EXPECT_EQ(keeper_.threads[11].held, 1);
  epoch_.reset();
  EXPECT_EQ(keeper_.threads[11].held, 0);
}

// Without a keeper: the page of its event tells that a thread at rest has not run.
class RestedTest : public VcpuSourceTest {
 protected:
  void SetUp() override {
    perf_.groups[11].page = 4;
    Begin(nullptr);
    At(0);
    At(10'000'000);  // its state is read: blocked
    At(20'000'000);  // its counters are read, at rest
    before_ = reads();
  }
  int before_ = 0;
};

TEST_F(RestedTest, ItsCountersAreNotReadAgainUntilItsStateIs) {
  const core::VcpuSample seen = At(30'000'000);
  EXPECT_EQ(reads(), before_);
  EXPECT_EQ(seen.read_end_ns, seen.read_begin_ns);
  EXPECT_GE(seen.read_end_ns, kStart_ns + 30'000'000);
  EXPECT_EQ(seen.state, ThreadState::kBlocked);
  vm_.SetState(0, 'R');  // woken, waits for a CPU: unseen for 40 ms at most
  EXPECT_EQ(At(40'000'000).state, ThreadState::kBlocked);
  EXPECT_EQ(At(55'000'000).state, ThreadState::kRunnable);
  EXPECT_EQ(reads(), before_ + 1);
}

TEST_F(RestedTest, OneThatRanIsRead) {
  perf_.groups[11].page = 6;
  vm_.Ran(0, 100, 200, 300);
  EXPECT_EQ(At(30'000'000).counts[0], 200u);
  EXPECT_EQ(reads(), before_ + 1);
}

// A group that shares the PMU with others may have run without changing its page.
TEST_F(RestedTest, AGroupThatTakesTurnsIsReadEachTick) {
  vm_.group(0).time_enabled_ns += 100;
  perf_.groups[11].page = 6;
  At(30'000'000);
  At(80'000'000);
  const int before = reads();
  At(90'000'000);
  At(100'000'000);
  EXPECT_EQ(reads(), before + 2);
}

TEST_F(VcpuSourceTest, WithoutAPageCountersAreReadEachTickAndFilesWhereTheyMayHaveChanged) {
  Begin(nullptr);
  vm_.SetScheduling(0, 1000, 10);
  At(0);
  EXPECT_EQ(At(10'000'000).run_ns, 1000u);
  vm_.SetScheduling(0, 5000, 50);  // not of this thread, which did not run
  vm_.SetState(0, 'R');
  const core::VcpuSample seen = At(20'000'000);
  EXPECT_EQ(seen.run_ns, 1000u);
  EXPECT_EQ(seen.state, ThreadState::kBlocked);
  EXPECT_EQ(reads(), 3);
  vm_.Ran(0, 100, 200, 300);
  const core::VcpuSample after = At(30'000'000);
  EXPECT_EQ(after.run_ns, 5000u);
  EXPECT_EQ(after.run_delay_ns, 50u);
  EXPECT_EQ(after.state, ThreadState::kRunnable);
  vm_.SetState(0, 'S');  // one that waits goes on to wait until it runs
  EXPECT_EQ(At(90'000'000).state, ThreadState::kRunnable);
}

}  // namespace
}  // namespace vcpulse::sampler

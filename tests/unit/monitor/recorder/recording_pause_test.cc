// A recording that is paused and goes on: nothing is counted between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/recorder/pause_watch.h"
#include "monitor/recorder/recording.h"
#include "tests/unit/monitor/recorder/recording_fixture.h"

namespace vcpulse::recorder {
namespace {

using core::ThreadState;
using fakes::FakeClock;
using kvm::WaitPlace;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RecordingPause : public RecordingFixture {
 protected:
  // As the loop does it: the sampler lets go of everything, then the pause is said.
  void Pause() {
    recording_.RetireAll();
    while (!recording_.idle()) {
      recording_.sampler().TakeCommands();
      recording_.Drain();
    }
    recording_.Pause();
  }

  // Kind and VM of each life-cycle record, in order.
  std::vector<std::pair<v1::LifeCycle::Kind, uint32_t>> LifeCycles() const {
    std::vector<std::pair<v1::LifeCycle::Kind, uint32_t>> all;
    for (const auto& record : writer_.records) {
      if (!record.has_life_cycle()) continue;
      all.emplace_back(record.life_cycle().kind(), record.life_cycle().vm());
    }
    return all;
  }

  static constexpr auto kFound = v1::LifeCycle::KIND_VM_FOUND;
  static constexpr auto kEnded = v1::LifeCycle::KIND_VM_ENDED;
  static constexpr auto kChanged = v1::LifeCycle::KIND_VCPUS_CHANGED;
  static constexpr auto kPaused = v1::LifeCycle::KIND_RECORDING_PAUSED;
  static constexpr auto kResumed = v1::LifeCycle::KIND_RECORDING_RESUMED;

  fakes::SampledVm db_{perf_, proc_, "db", 20, 21, 1};
};

TEST_F(RecordingPause, NoSampleBetweenAndAnotherEpochAfter) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  ASSERT_TRUE(recording_.Track(db_.vm()).ok());
  for (int i = 0; i < 2; ++i) Tick();
  Pause();
  EXPECT_TRUE(recording_.paused());
  // A rescan finds what it knew.
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  for (int i = 0; i < 3; ++i) Tick();
  EXPECT_THAT(writer_.ticks, SizeIs(4));
  EXPECT_TRUE(recording_.idle()) << "no counter is open";

  recording_.Resume();
  EXPECT_FALSE(recording_.paused());
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  ASSERT_TRUE(recording_.Track(db_.vm()).ok());
  ASSERT_TRUE(recording_.Track(web_.vm()).ok()) << "and no third epoch";
  Tick();
  ASSERT_THAT(writer_.ticks, SizeIs(6));
  EXPECT_EQ(writer_.ticks[4].epoch, 2u);
  EXPECT_EQ(writer_.ticks[5].epoch, 2u);
  EXPECT_EQ(writer_.ticks[4].verdicts[0].band, core::Band::kNone) << "the first of its epoch";
  EXPECT_THAT(writer_.VcpuSets(), SizeIs(4));
  recording_.Ended(KeyOf(web_.vm()), "the VMM process has ended");
  EXPECT_THAT(LifeCycles(),
              ElementsAre(std::pair(kFound, 1u), std::pair(kFound, 2u), std::pair(kPaused, 0u),
                          std::pair(kResumed, 0u), std::pair(kEnded, 1u)))
      << "each keeps its number";
}

TEST_F(RecordingPause, AMissedTickOfAPauseIsNoGap) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  Tick();
  Pause();
  recording_.sampler().Missed({.first = 1, .last = 3}, FakeClock::Now());
  recording_.Drain();
  EXPECT_THAT(writer_.Gaps(), IsEmpty());
  recording_.Resume();
  recording_.sampler().Missed({.first = 4, .last = 5}, FakeClock::Now());
  recording_.Drain();
  EXPECT_THAT(writer_.Gaps(), SizeIs(1));
}

TEST_F(RecordingPause, AVmThatEndsInItIsSaidToEnd) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  Pause();
  recording_.Ended(KeyOf(web_.vm()), "the VMM process has ended");
  recording_.Resume();
  EXPECT_THAT(recording_.vms(), IsEmpty());
  EXPECT_THAT(LifeCycles(), ElementsAre(std::pair(kFound, 1u), std::pair(kPaused, 0u),
                                        std::pair(kEnded, 1u), std::pair(kResumed, 0u)));
}

TEST_F(RecordingPause, AVmThatAppearsInItIsFoundAfterIt) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  Pause();
  kvm::Vm starting = db_.vm();
  starting.vcpus[0].tid = 22;
  ASSERT_TRUE(recording_.Track(starting).ok());
  ASSERT_TRUE(recording_.Track(db_.vm()).ok()) << "no change of a VM that nobody knows";
  EXPECT_THAT(recording_.vms(), SizeIs(2)) << "it is watched for its end";
  Tick();
  EXPECT_THAT(writer_.ticks, IsEmpty());
  recording_.Resume();
  ASSERT_TRUE(recording_.Track(db_.vm()).ok());
  Tick();
  ASSERT_THAT(writer_.ticks, SizeIs(1));
  EXPECT_EQ(writer_.ticks[0].vm, 2u);
  EXPECT_EQ(writer_.ticks[0].epoch, 1u);
  EXPECT_THAT(LifeCycles(), ElementsAre(std::pair(kFound, 1u), std::pair(kPaused, 0u),
                                        std::pair(kResumed, 0u), std::pair(kFound, 2u)));
}

// Nothing was sampled of it, so the timeline does not name it; its number is the next one's.
TEST_F(RecordingPause, AVmThatCameAndWentInItIsNotMentioned) {
  Pause();
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  recording_.Ended(KeyOf(web_.vm()), "the VMM process has ended");
  recording_.Resume();
  ASSERT_TRUE(recording_.Track(db_.vm()).ok());
  EXPECT_THAT(LifeCycles(),
              ElementsAre(std::pair(kPaused, 0u), std::pair(kResumed, 0u), std::pair(kFound, 1u)));
}

TEST_F(RecordingPause, OtherThreadsInItAreSaidAndSampledAfterIt) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  Tick();
  Pause();
  kvm::Vm changed = web_.vm();
  changed.vcpus.pop_back();
  ASSERT_TRUE(recording_.Track(changed).ok());
  ASSERT_TRUE(recording_.Track(changed).ok());
  recording_.Resume();
  ASSERT_TRUE(recording_.Track(changed).ok());
  Tick();
  EXPECT_EQ(writer_.ticks.back().epoch, 2u);
  EXPECT_THAT(writer_.VcpuSets().back().vcpus(), SizeIs(1));
  EXPECT_THAT(LifeCycles(), ElementsAre(std::pair(kFound, 1u), std::pair(kPaused, 0u),
                                        std::pair(kChanged, 1u), std::pair(kResumed, 0u)));
}

// Counters that cannot be opened at the end of a pause are tried again by the next rescan.
TEST_F(RecordingPause, AVmThatCannotBeOpenedAfterItIsTriedAgain) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  Pause();
  recording_.Resume();
  kvm::Vm gone = web_.vm();
  for (kvm::Vcpu& vcpu : gone.vcpus) vcpu.tid += 1000;
  EXPECT_FALSE(recording_.Track(gone).ok());
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  Tick();
  EXPECT_THAT(writer_.ticks, SizeIs(1));
  EXPECT_EQ(writer_.ticks[0].epoch, 2u);
}

// One that was found in the pause too; what was not opened has taken no number.
TEST_F(RecordingPause, AVmThatAppearsInItIsTriedAgainToo) {
  Pause();
  ASSERT_TRUE(recording_.Track(db_.vm()).ok());
  recording_.Resume();
  kvm::Vm gone = db_.vm();
  for (kvm::Vcpu& vcpu : gone.vcpus) vcpu.tid += 1000;
  EXPECT_FALSE(recording_.Track(gone).ok());
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  ASSERT_TRUE(recording_.Track(db_.vm()).ok());
  EXPECT_THAT(LifeCycles(), ElementsAre(std::pair(kPaused, 0u), std::pair(kResumed, 0u),
                                        std::pair(kFound, 1u), std::pair(kFound, 2u)));
  EXPECT_EQ(writer_.VcpuSets()[0].instance().name(), "web");
}

TEST_F(RecordingPause, NoMoreVmsAreRememberedThanCanBeRecorded) {
  Pause();
  kvm::Vm vm = web_.vm();
  for (size_t i = 0; i < sampler::kMaxEpochs; ++i) {
    ASSERT_TRUE(recording_.Track(vm).ok());
    ++vm.start_time_ticks;
  }
  EXPECT_EQ(recording_.Track(vm).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(RecordingPause, AVmWithoutVcpusIsLeftToTheNextLook) {
  Pause();
  kvm::Vm none = web_.vm();
  none.vcpus.clear();
  EXPECT_EQ(recording_.Track(none).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(recording_.vms(), IsEmpty());
}

TEST_F(RecordingPause, MarkersKeepTheOrderOfTheirReceipt) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  recording_.Mark("a", 5);
  Pause();
  recording_.Mark("b", 6);
  recording_.Mark("a", 6);
  recording_.Resume();
  recording_.Mark("c", 7);
  std::vector<std::pair<std::string, int64_t>> markers;
  for (const auto& record : writer_.records) {
    if (record.has_marker())
      markers.emplace_back(record.marker().name(), record.marker().mono_ns());
  }
  EXPECT_THAT(markers, ElementsAre(std::pair("a", 5), std::pair("b", 6), std::pair("a", 6),
                                   std::pair("c", 7)));
}

class PauseWatchTest : public ::testing::Test {
 protected:
  static constexpr size_t kVcpus = 3;

  // The next sample, all vCPUs blocked; those in `ran` had some time enabled since the last.
  std::optional<PauseCause> Observe(const std::vector<size_t>& ran = {}) {
    for (const size_t vcpu : ran) sample_.vcpus[vcpu].time_enabled_ns += 1000;
    for (core::VcpuSample& vcpu : sample_.vcpus) vcpu.state = ThreadState::kBlocked;
    sample_.wake_ns += interval_ns_;
    return watch_.Observe(sample_);
  }

  std::vector<WaitPlace> places_ = std::vector<WaitPlace>(kVcpus, WaitPlace::kUserspace);
  int64_t interval_ns_ = 100'000'000;
  int looks_ = 0;
  PauseWatch watch_{kVcpus, [this](size_t vcpu) {
                      ++looks_;
                      return places_[vcpu];
                    }};
  core::Sample sample_{.vcpus = std::vector<core::VcpuSample>(kVcpus)};
};

TEST_F(PauseWatchTest, TheFirstSampleTellsNothing) {
  EXPECT_EQ(Observe(), std::nullopt);
  EXPECT_EQ(Observe(), PauseCause::kHeld);
  for (const core::VcpuSample& vcpu : sample_.vcpus) EXPECT_EQ(vcpu.state, ThreadState::kPaused);
}

// An idle guest of many vCPUs, of which some run in each tick, costs nothing.
TEST_F(PauseWatchTest, LooksOnlyOnceAllAreQuiet) {
  Observe();
  for (size_t i = 0; i < 30; ++i) EXPECT_EQ(Observe({i % kVcpus}), PauseCause::kNone);
  EXPECT_EQ(looks_, 0);
  EXPECT_EQ(Observe(), PauseCause::kHeld);
  EXPECT_EQ(looks_, 3);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Observe(), PauseCause::kHeld);
  EXPECT_EQ(looks_, 3) << "the answers hold";
}

// At 1 ms a lock of the VMM that all vCPUs wait for is no pause; 50 ms of it are.
TEST_F(PauseWatchTest, ShortTicksTakeLongerToTell) {
  interval_ns_ = 1'000'000;
  Observe();
  EXPECT_EQ(Observe({0}), PauseCause::kNone);
  for (int i = 1; i < 50; ++i) EXPECT_EQ(Observe(), PauseCause::kNone) << i;
  EXPECT_EQ(Observe(), PauseCause::kHeld);
  EXPECT_EQ(Observe(), PauseCause::kHeld);
}

TEST_F(PauseWatchTest, OneThatWaitsInKvmEndsTheLooking) {
  places_[0] = WaitPlace::kKvm;
  for (int i = 0; i < 10; ++i) EXPECT_NE(Observe(), PauseCause::kHeld);
  EXPECT_EQ(looks_, 1);
  places_[0] = WaitPlace::kUserspace;
  EXPECT_EQ(Observe({0}), PauseCause::kNone) << "the tick of the stop";
  EXPECT_EQ(Observe(), PauseCause::kHeld);
}

TEST_F(PauseWatchTest, WhatCannotBeToldIsNoPause) {
  places_[2] = WaitPlace::kUnknown;
  Observe();
  EXPECT_EQ(Observe(), PauseCause::kNone);
  EXPECT_EQ(sample_.vcpus[0].state, ThreadState::kBlocked);
}

// All stopped, then going on in one sample; one thread alone that is traced is no pause.
TEST_F(PauseWatchTest, StoppedThreads) {
  Observe();
  for (core::VcpuSample& vcpu : sample_.vcpus) vcpu.state = ThreadState::kStopped;
  EXPECT_EQ(watch_.Observe(sample_), PauseCause::kSigstop);
  sample_.vcpus[1].state = ThreadState::kRunnable;
  EXPECT_EQ(watch_.Observe(sample_), PauseCause::kNone);
}

}  // namespace

}  // namespace vcpulse::recorder

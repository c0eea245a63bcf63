#include "monitor/recorder/pause_watch.h"

#include <gtest/gtest.h>

namespace vcpulse::recorder {
namespace {

using core::ThreadState;
using kvm::WaitPlace;

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

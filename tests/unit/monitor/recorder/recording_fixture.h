#pragma once

#include <gtest/gtest.h>

#include "monitor/recorder/recording.h"
#include "tests/fakes/collecting_writer.h"
#include "tests/fakes/sampled_vm.h"

namespace vcpulse::recorder {

// A recording of VMs that are not there, ticked by hand every 100 ms.
class RecordingFixture : public ::testing::Test {
 protected:
  void Tick() {
    fakes::FakeClock::now_ns = static_cast<int64_t>(10'000'000'000 + tick_ * 100'000'000);
    const int64_t now = fakes::FakeClock::now_ns;
    recording_.sampler().TakeCommands();
    recording_.sampler().Tick(tick_++, now, now);
    recording_.Drain();
  }

  fakes::FakePerfEvents perf_;
  fakes::ProcDir proc_;
  fakes::CollectingWriter writer_;
  fakes::SampledVm web_{perf_, proc_, "web", 10, 11, 2};
  Recording recording_{{.root = proc_.root(),
                        .open = {.wanted = {.set = kvm::EventSet::kMin}},
                        .residency = {{.max_hz = 1e9}},
                        .now_ns = fakes::FakeClock::Now},
                       perf_,
                       writer_};
  uint64_t tick_ = 0;
};

}  // namespace vcpulse::recorder

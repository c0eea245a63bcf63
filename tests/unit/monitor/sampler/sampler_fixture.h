#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "monitor/sampler/sampler.h"
#include "tests/fakes/sampled_vm.h"

namespace vcpulse::sampler {

class SamplerTest : public ::testing::Test {
 protected:
  // One tick of 100 ms; what comes back.
  std::vector<Handover> Tick(uint64_t tick) {
    fakes::FakeClock::now_ns = static_cast<int64_t>(1'000'000'000 + tick * 100'000'000);
    const int64_t now = fakes::FakeClock::now_ns;
    sampler_.TakeCommands();
    sampler_.Tick(tick, now - 5000, now);
    std::vector<Handover> all;
    Handover handover;
    while (sampler_.Take(handover)) all.push_back(handover);
    return all;
  }

  fakes::FakePerfEvents perf_;
  fakes::ProcDir proc_;
  Sampler sampler_{{.now_ns = fakes::FakeClock::Now}};
};

}  // namespace vcpulse::sampler

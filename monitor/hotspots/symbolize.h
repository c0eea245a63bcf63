#pragma once

#include <cstdint>

#include "monitor/hotspots/symbols.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::hotspots {

// Samples of one window in kernel mode.
struct Symbolized {
  uint64_t named = 0;
  uint64_t all = 0;
};

// Writes into `window` which function holds each of its kernel addresses, and the code around them
// where `kernel` has it and nobody read it from the guest. What an earlier call wrote is replaced.
// Pure.
Symbolized Symbolize(const GuestKernel& kernel, v1::HotAddresses& window);

}  // namespace vcpulse::hotspots

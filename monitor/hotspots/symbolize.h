#pragma once

#include <cstdint>

#include "monitor/hotspots/symbols.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::hotspots {

// Writes into `window` which function holds each of its kernel addresses, and the code around them
// where `kernel` has it and the window does not. Older names are replaced. Returns the samples that
// have a name now. Pure.
uint64_t Symbolize(const GuestKernel& kernel, v1::HotAddresses& window);

}  // namespace vcpulse::hotspots

#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kvm/tracing/sample_records.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::hotspots {

// What a damaged file says may be any number; sums of these stay below 2^64.
inline uint64_t Believable(uint64_t samples) { return std::min(samples, uint64_t{1} << 32); }

// Each address of a window that has samples, as far as its lists go.
void ForEachPlace(const v1::HotAddresses& window,
                  absl::FunctionRef<void(kvm::GuestAddress at, uint64_t samples)> take);

}  // namespace vcpulse::hotspots

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "kvm/tracing/sample_records.h"
#include "monitor/hotspots/symbols.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::hotspots {

// What a damaged file says may be any number; sums of these stay below 2^64.
inline uint64_t Believable(uint64_t samples) { return std::min(samples, uint64_t{1} << 32); }

// One address of a window.
struct Place {
  kvm::GuestAddress at;
  uint64_t samples = 0;
  std::optional<Symbol> named;  // as the file itself names it (`vcpulse symbolize`)
};

// Each address of a window that has samples, as far as its lists go.
void ForEachPlace(const v1::HotAddresses& window, absl::FunctionRef<void(const Place& place)> take);

}  // namespace vcpulse::hotspots

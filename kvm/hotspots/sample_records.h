#pragma once

// The records that the kernel writes into the ring of a perf event (perf_event_open(2), "MMAP
// layout"). Pure: bytes in, values out.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/functional/function_ref.h"

namespace vcpulse::kvm {

enum class GuestMode : uint8_t { kUnknown, kKernel, kUser };

// One instruction pointer of a guest.
struct GuestAddress {
  uint64_t address = 0;
  GuestMode mode = GuestMode::kUnknown;

  auto operator<=>(const GuestAddress&) const = default;
};

// What is asked for with each sample; the parser knows no other order.
inline constexpr uint64_t kIpSampleType = 1 | 2 | 4 | 256;  // IP, TID, TIME, PERIOD
inline constexpr uint64_t kRawSampleType = 2 | 4 | 1024;    // TID, TIME, RAW

struct RingRecords {
  // One sample of kIpSampleType that is the guest's.
  std::function<void(GuestAddress)> address;
  // The raw part of one of kRawSampleType.
  std::function<void(std::span<const uint8_t>)> raw;
  uint64_t lost = 0;  // that the ring had no room for
};

// Goes through whole records, in order. False where they make no sense: what follows is passed
// over.
bool ReadRecords(std::span<const uint8_t> bytes, bool is_raw, RingRecords& into);

}  // namespace vcpulse::kvm

#pragma once

// The records that the kernel writes into the ring of a perf event (perf_event_open(2), "MMAP
// layout"). Pure: bytes in, values out.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

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

// One sample of kRawSampleType.
struct RawSample {
  pid_t tid = 0;         // the thread that ran
  uint64_t time_ns = 0;  // of the event's clock
  // What the tracepoint recorded; of other events four bytes that mean nothing.
  std::span<const uint8_t> record;
};

// What is asked for with each PERF_RECORD_SWITCH (attr.context_switch, sample_id_all).
inline constexpr uint64_t kSwitchSampleType = 2 | 4 | 128;  // TID, TIME, CPU

// A thread got a CPU, or lost it.
struct ThreadSwitch {
  bool is_out = false;
  bool waits = false;    // of one that lost it: it could have run on
  uint64_t time_ns = 0;  // of the event's clock
  int cpu = 0;
};

struct RingRecords {
  // One sample of kIpSampleType that is the guest's.
  std::function<void(GuestAddress)> address;
  // One of kRawSampleType.
  std::function<void(const RawSample&)> raw;
  // One of kSwitchSampleType; ignored where this is null.
  std::function<void(const ThreadSwitch&)> switched;
  // So many records had no room in the ring, between the sample before and the next one.
  std::function<void(uint64_t)> lost;
};

// Goes through whole records, in order. False where they make no sense: what follows is passed
// over.
bool ReadRecords(std::span<const uint8_t> bytes, bool is_raw, const RingRecords& into);

}  // namespace vcpulse::kvm

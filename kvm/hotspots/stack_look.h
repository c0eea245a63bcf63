#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kvm/hotspots/registers_text.h"

namespace vcpulse::kvm {

// Where a vCPU was, and the top of its stack then.
struct StackLook {
  StackRegisters registers;
  std::vector<uint8_t> memory;  // from registers.stack upwards

  bool operator==(const StackLook&) const = default;
};

// How much of a stack is read: that of a Linux kernel has 16 KiB, its innermost frames a few
// hundred bytes.
inline constexpr size_t kStackBytes = 2048;
// How many looks are kept of a vCPU: four minutes.
inline constexpr size_t kMostLooks = 1024;

}  // namespace vcpulse::kvm

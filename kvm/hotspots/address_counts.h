#pragma once

#include <cstdint>
#include <map>

#include "kvm/tracing/sample_records.h"

namespace vcpulse::kvm {

// What was sampled of one vCPU.
struct AddressCounts {
  std::map<GuestAddress, uint64_t> counts;  // samples by address
  uint64_t lost = 0;                        // samples that the kernel had no room for
  uint64_t halted = 0;                      // looks that found it halted; of kQmp, on x86

  uint64_t Samples() const {
    uint64_t samples = 0;
    for (const auto& [address, count] : counts) samples += count;
    return samples;
  }
};

// The upper half of the address space is the kernel's, on x86-64 and arm64.
inline GuestMode ModeOfAddress(uint64_t address) {
  return address >> 63 != 0 ? GuestMode::kKernel : GuestMode::kUnknown;
}

}  // namespace vcpulse::kvm

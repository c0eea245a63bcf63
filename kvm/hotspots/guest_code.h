#pragma once

// Code of a guest, read from its memory through QMP. Only where somebody asked for it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/hotspots/address_counts.h"
#include "kvm/hotspots/wait_loops.h"
#include "kvm/vm.h"

namespace vcpulse::kvm {

// Some bytes of code.
struct GuestCode {
  uint64_t address = 0;  // of the first one
  std::vector<uint8_t> bytes;
  Isa isa = kHostIsa;

  bool operator==(const GuestCode&) const = default;
};

// How far around an address its code is read and looked at, in bytes: a loop that waits is shorter
// than twice that.
inline constexpr uint64_t kCodeAround = 64;

// Errors: FailedPrecondition where QMP's address is not known, or memory and registers are
// encrypted (a confidential guest).
absl::Status MayLookInside(const Vm& vm);

// The code from kCodeAround before to kCodeAround behind each address, as this vCPU (cpu-index)
// sees it now: in user mode it may be another process than the one that was sampled. What is not
// mapped is left out. It stops the vCPU for a moment. Errors: as above, and QMP's. Blocks for 200
// ms at most.
absl::StatusOr<std::vector<GuestCode>> ReadGuestCode(const Vm& vm, int vcpu,
                                                     std::span<const uint64_t> addresses);

// So many bytes from `address` on, as this vCPU sees them, up to the first that is not mapped.
// Errors and time as above.
absl::StatusOr<std::vector<uint8_t>> ReadGuestMemory(const Vm& vm, int vcpu, uint64_t address,
                                                     size_t bytes);

// The addresses with most samples, at most so many, of those that are close together one.
std::vector<uint64_t> HottestPlaces(const AddressCounts& counts, size_t most);

// The bytes of a dump that QEMU's `x /Nxb ADDRESS` printed, up to the first that was not read.
// Pure.
std::vector<uint8_t> BytesOfDump(std::string_view text);

}  // namespace vcpulse::kvm

#pragma once

#include <optional>
#include <string_view>

#include "kvm/tracing/sample_records.h"

namespace vcpulse::kvm {

// Where a vCPU is (linear address), from what QEMU's `info registers` prints of it: x86 (RIP or
// EIP, the base of CS, CPL) and arm64 (PC, the exception level in PSTATE). Nothing where neither is
// in the text. Pure.
std::optional<GuestAddress> AddressInRegisters(std::string_view text);

// Whether the vCPU is halted, so that it runs nowhere. QEMU tells it of x86 alone.
bool IsHaltedInRegisters(std::string_view text);

}  // namespace vcpulse::kvm

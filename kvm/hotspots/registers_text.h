#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kvm/hotspots/wait_loops.h"
#include "kvm/tracing/sample_records.h"

namespace vcpulse::kvm {

// Where a vCPU is (linear address), from what QEMU's `info registers` prints of it: x86 (RIP or
// EIP, the base of CS, CPL) and arm64 (PC, the exception level in PSTATE). Nothing where neither is
// in the text. Pure.
std::optional<GuestAddress> AddressInRegisters(std::string_view text);

// What a stack is walked from. Addresses are linear.
struct StackRegisters {
  Isa isa = kHostIsa;
  GuestAddress at;     // RIP, PC
  uint64_t stack = 0;  // RSP, SP
  uint64_t frame = 0;  // RBP, X29
  uint64_t link = 0;   // X30; 0 on x86

  bool operator==(const StackRegisters&) const = default;
};

// Nothing where one of them is not in the text: 32-bit guests have none.
std::optional<StackRegisters> StackRegistersIn(std::string_view text);

// Whether the vCPU is halted, so that it runs nowhere. QEMU tells it of x86 alone.
bool IsHaltedInRegisters(std::string_view text);

}  // namespace vcpulse::kvm

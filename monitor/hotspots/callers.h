#pragma once

// From where the code that a vCPU was seen in had been called. Best effort: pure functions of one
// look at registers and stack.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kvm/hotspots/stack_look.h"
#include "monitor/hotspots/symbols.h"

namespace vcpulse::hotspots {

inline constexpr size_t kMostCallers = 8;

// The return addresses of the kernel's functions, innermost first, kMostCallers at most: by frame
// records on arm64 (AAPCS64, 6.4.6; Linux keeps them), by the kernel's ORC on x86, without which
// there are none. It ends where the next one is not certain: beyond the stack that was read, at an
// interrupt (on arm64 where symbols are known), in code of a module.
std::vector<uint64_t> CallersOf(const kvm::StackLook& look, const GuestKernel& kernel);

}  // namespace vcpulse::hotspots

#pragma once

#include <cstdint>
#include <span>

namespace vcpulse::kvm {

// An instruction set of guests.
enum class Isa : uint8_t { kX86, kArm64 };

#if defined(__x86_64__)
inline constexpr Isa kHostIsa = Isa::kX86;
#elif defined(__aarch64__)
inline constexpr Isa kHostIsa = Isa::kArm64;
#endif

// Whether the instruction at `at` is in a loop that waits: a branch at or behind it goes back to
// it or before it, and between the two stands an instruction that says "I am waiting": PAUSE of x86
// (F3 90; Intel SDM, volume 2B), YIELD, WFE or WFET of arm64 (Arm ARM, DDI 0487, C6.2). Only loops
// that lie in `code` as a whole, which begins at `begin`, are seen. x86's instructions have no
// alignment: bytes within others may look like the branch and the PAUSE, which is rare for both at
// once. Pure.
bool IsInWaitLoop(std::span<const uint8_t> code, uint64_t begin, uint64_t at, Isa isa);

}  // namespace vcpulse::kvm

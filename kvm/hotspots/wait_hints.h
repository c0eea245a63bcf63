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

// Whether an instruction that says "I am waiting" begins and ends within `code`, which begins at
// `address`: PAUSE of x86 (F3 90; Intel SDM, volume 2B), YIELD, WFE and WFET of arm64 (Arm ARM,
// DDI 0487, C6.2). x86's instructions have no alignment, so the two bytes may be part of another
// one: by chance in 1 of 65,536 places. Pure.
bool HasWaitHint(std::span<const uint8_t> code, uint64_t address, Isa isa);

}  // namespace vcpulse::kvm

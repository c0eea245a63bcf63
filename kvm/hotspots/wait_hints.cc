#include "kvm/hotspots/wait_hints.h"

#include <cstddef>

namespace vcpulse::kvm {
namespace {

bool HasPause(std::span<const uint8_t> code) {
  for (size_t i = 0; i + 1 < code.size(); ++i) {
    if (code[i] == 0xf3 && code[i + 1] == 0x90) return true;
  }
  return false;
}

bool IsArmWaitHint(uint32_t word) {
  constexpr uint32_t kYield = 0xd503203f;
  constexpr uint32_t kWfe = 0xd503205f;
  constexpr uint32_t kWfet = 0xd5031000;  // the register in its low five bits
  constexpr uint32_t kRegister = 0x1f;
  return word == kYield || word == kWfe || (word & ~kRegister) == kWfet;
}

}  // namespace

bool HasWaitHint(std::span<const uint8_t> code, uint64_t address, Isa isa) {
  if (isa == Isa::kX86) return HasPause(code);
  constexpr size_t kWord = 4;  // little-endian and aligned, whatever the data are
  for (size_t i = (kWord - address % kWord) % kWord; i + kWord <= code.size(); i += kWord) {
    const uint32_t word = uint32_t{code[i]} | uint32_t{code[i + 1]} << 8 |
                          uint32_t{code[i + 2]} << 16 | uint32_t{code[i + 3]} << 24;
    if (IsArmWaitHint(word)) return true;
  }
  return false;
}

}  // namespace vcpulse::kvm

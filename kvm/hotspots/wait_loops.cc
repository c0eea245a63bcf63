#include "kvm/hotspots/wait_loops.h"

#include <cstddef>
#include <optional>

#include "kvm/base/bytes.h"

namespace vcpulse::kvm {
namespace {

// A branch within some code, in bytes from its beginning.
struct Branch {
  size_t end = 0;      // where the next instruction begins
  int64_t target = 0;  // may lie outside
};

bool HasPause(std::span<const uint8_t> code) {
  for (size_t i = 0; i + 1 < code.size(); ++i) {
    if (code[i] == 0xf3 && code[i + 1] == 0x90) return true;
  }
  return false;
}

// The jump that these bytes are, where they are one: JMP rel8 and rel32, Jcc rel8 and rel32, LOOP.
std::optional<Branch> X86BranchAt(std::span<const uint8_t> code, size_t at) {
  const auto to = [at](size_t length, int64_t distance) {
    return Branch{.end = at + length, .target = static_cast<int64_t>(at + length) + distance};
  };
  const uint8_t first = code[at];
  const bool is_short = first == 0xeb || (first & 0xf0) == 0x70 || (first & 0xfc) == 0xe0;
  if (is_short) {
    const auto distance = ReadAt<int8_t>(code, at + 1);
    return distance ? std::optional(to(2, *distance)) : std::nullopt;
  }
  const bool is_conditional =
      first == 0x0f && at + 1 < code.size() && (code[at + 1] & 0xf0) == 0x80;
  if (first != 0xe9 && !is_conditional) return std::nullopt;
  const size_t opcode = is_conditional ? 2 : 1;
  const auto distance = ReadAt<int32_t>(code, at + opcode);
  return distance ? std::optional(to(opcode + 4, *distance)) : std::nullopt;
}

// The low `bits` of `value` with their sign, in words.
int64_t Distance(uint32_t value, int bits) {
  const int64_t sign = int64_t{1} << (bits - 1);
  const int64_t low = value & ((uint32_t{1} << bits) - 1);
  return 4 * ((low ^ sign) - sign);
}

// B, B.cond, CBZ and CBNZ, TBZ and TBNZ.
std::optional<Branch> ArmBranchAt(uint32_t word, size_t at) {
  std::optional<int64_t> distance;
  if ((word & 0xfc000000) == 0x14000000) distance = Distance(word, 26);
  if ((word & 0xff000000) == 0x54000000) distance = Distance(word >> 5, 19);
  if ((word & 0x7e000000) == 0x34000000) distance = Distance(word >> 5, 19);
  if ((word & 0x7e000000) == 0x36000000) distance = Distance(word >> 5, 14);
  if (!distance) return std::nullopt;
  return Branch{.end = at + 4, .target = static_cast<int64_t>(at) + *distance};
}

bool IsArmWaitHint(uint32_t word) {
  constexpr uint32_t kYield = 0xd503203f;
  constexpr uint32_t kWfe = 0xd503205f;
  constexpr uint32_t kWfet = 0xd5031000;  // the register in its low five bits
  constexpr uint32_t kRegister = 0x1f;
  return word == kYield || word == kWfe || (word & ~kRegister) == kWfet;
}

// Little-endian, whatever the data are. Within `code`.
uint32_t WordAt(std::span<const uint8_t> code, size_t at) {
  return uint32_t{code[at]} | uint32_t{code[at + 1]} << 8 | uint32_t{code[at + 2]} << 16 |
         uint32_t{code[at + 3]} << 24;
}

bool HasArmWaitHint(std::span<const uint8_t> code) {
  for (size_t i = 0; i + 4 <= code.size(); i += 4) {
    if (IsArmWaitHint(WordAt(code, i))) return true;
  }
  return false;
}

}  // namespace

bool IsInWaitLoop(std::span<const uint8_t> code, uint64_t begin, uint64_t at, Isa isa) {
  if (at < begin || at - begin >= code.size()) return false;
  if (isa == Isa::kArm64) {
    const size_t odd = static_cast<size_t>(-begin & 3);
    if (odd > at - begin) return false;
    code = code.subspan(odd);
    begin += odd;
  }
  const size_t step = isa == Isa::kArm64 ? 4 : 1;
  const size_t offset = static_cast<size_t>(at - begin) / step * step;
  for (size_t i = offset; i + step <= code.size(); i += step) {
    const auto branch = isa == Isa::kX86 ? X86BranchAt(code, i) : ArmBranchAt(WordAt(code, i), i);
    if (!branch || branch->target < 0 || branch->target > static_cast<int64_t>(offset)) continue;
    const auto first = static_cast<size_t>(branch->target);
    const auto loop = code.subspan(first, branch->end - first);
    if (isa == Isa::kX86 ? HasPause(loop) : HasArmWaitHint(loop)) return true;
  }
  return false;
}

}  // namespace vcpulse::kvm

#include "kvm/hotspots/wait_hints.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace vcpulse::kvm {
namespace {

// As native_queued_spin_lock_slowpath waits:  pause; mov (%rdi),%eax; test %al,%al; jne.
constexpr std::array<uint8_t, 8> kX86Spin = {0xf3, 0x90, 0x8b, 0x07, 0x84, 0xc0, 0x75, 0xf8};

TEST(HasWaitHint, FindsAPauseAnywhere) {
  EXPECT_TRUE(HasWaitHint(kX86Spin, 0x1001, Isa::kX86));
  EXPECT_FALSE(HasWaitHint(std::span(kX86Spin).subspan(1), 0x1002, Isa::kX86));
  // NOP without its prefix, and a prefix at the end, are none.
  EXPECT_FALSE(HasWaitHint(std::array<uint8_t, 3>{0x90, 0x90, 0xf3}, 0, Isa::kX86));
  EXPECT_FALSE(HasWaitHint({}, 0, Isa::kX86));
}

std::vector<uint8_t> WordsOf(std::initializer_list<uint32_t> words) {
  std::vector<uint8_t> bytes;
  for (const uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<uint8_t>(word >> shift));
  }
  return bytes;
}

TEST(HasWaitHint, FindsTheHintsOfArm64) {
  constexpr uint32_t kNop = 0xd503201f;
  constexpr uint32_t kWfi = 0xd503207f;  // a halt, no spin
  constexpr uint32_t kIsb = 0xd5033fdf;
  EXPECT_FALSE(HasWaitHint(WordsOf({kNop, kWfi, kIsb}), 0x1000, Isa::kArm64));
  for (const uint32_t hint : {0xd503203fu, 0xd503205fu, 0xd5031000u, 0xd503101fu}) {
    EXPECT_TRUE(HasWaitHint(WordsOf({kNop, hint}), 0x1000, Isa::kArm64)) << std::hex << hint;
  }
}

// Four bytes across two instructions are none.
TEST(HasWaitHint, LooksAtWholeInstructionsOfArm64) {
  const std::vector<uint8_t> code = WordsOf({0xd503205f, 0xd503201f});
  EXPECT_TRUE(HasWaitHint(code, 0x1000, Isa::kArm64));
  EXPECT_FALSE(HasWaitHint(code, 0x1002, Isa::kArm64));
  std::vector<uint8_t> behind = {0, 0};
  behind.insert(behind.end(), code.begin(), code.end());
  EXPECT_TRUE(HasWaitHint(behind, 0x0ffe, Isa::kArm64));
  EXPECT_FALSE(HasWaitHint(std::span(code).first(3), 0x1000, Isa::kArm64));
}

}  // namespace
}  // namespace vcpulse::kvm

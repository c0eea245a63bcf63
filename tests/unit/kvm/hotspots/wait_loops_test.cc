#include "kvm/hotspots/wait_loops.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace vcpulse::kvm {
namespace {

// At 0x1000, as native_queued_spin_lock_slowpath waits:
//   0: mov (%rdi),%eax; 2: test %al,%al; 4: je +4 (10); 6: pause; 8: jmp 0; 10: ret; 11: pause
const std::vector<uint8_t> kX86 = {0x8b, 0x07, 0x84, 0xc0, 0x74, 0x04, 0xf3,
                                   0x90, 0xeb, 0xf6, 0xc3, 0xf3, 0x90};

bool InX86(const std::vector<uint8_t>& code, uint64_t at) {
  return IsInWaitLoop(code, 0x1000, at, Isa::kX86);
}

TEST(IsInWaitLoop, OfX86FromItsHeadToItsJump) {
  for (const uint64_t at : {0x1000, 0x1002, 0x1004, 0x1006, 0x1008}) {
    EXPECT_TRUE(InX86(kX86, at)) << std::hex << at;
  }
  EXPECT_FALSE(InX86(kX86, 0x100a));  // behind it
  EXPECT_FALSE(InX86(kX86, 0x0fff));
  EXPECT_FALSE(InX86(kX86, 0x2000));
  EXPECT_FALSE(IsInWaitLoop({}, 0x1000, 0x1000, Isa::kX86));
}

// A PAUSE that the loop does not reach is none of its.
TEST(IsInWaitLoop, APauseBesideALoopIsNotInIt) {
  //   0: inc %eax; 2: jmp 0; 4: pause; 6: ret
  const std::vector<uint8_t> behind = {0xff, 0xc0, 0xeb, 0xfc, 0xf3, 0x90, 0xc3};
  EXPECT_FALSE(InX86(behind, 0x1000));
  EXPECT_FALSE(InX86(behind, 0x1002));
  //   0: pause; 2: inc %eax; 4: jmp 2
  const std::vector<uint8_t> before = {0xf3, 0x90, 0xff, 0xc0, 0xeb, 0xfc};
  EXPECT_FALSE(InX86(before, 0x1002));
  // Forwards alone.  0: pause; 2: jmp +0
  EXPECT_FALSE(InX86({0xf3, 0x90, 0xeb, 0x00, 0xc3}, 0x1000));
}

TEST(IsInWaitLoop, KnowsTheJumpsOfX86) {
  const std::vector<std::vector<uint8_t>> jumps = {
      {0xeb, 0xfc},                          // jmp rel8
      {0x75, 0xfc},                          // jne rel8
      {0xe2, 0xfc},                          // loop
      {0xe9, 0xf9, 0xff, 0xff, 0xff},        // jmp rel32
      {0x0f, 0x85, 0xf8, 0xff, 0xff, 0xff},  // jne rel32
  };
  for (const std::vector<uint8_t>& jump : jumps) {
    std::vector<uint8_t> code = {0xf3, 0x90};
    code.insert(code.end(), jump.begin(), jump.end());
    EXPECT_TRUE(InX86(code, 0x1000)) << std::hex << int{jump[0]};
    code.pop_back();  // cut within
    EXPECT_FALSE(InX86(code, 0x1000)) << std::hex << int{jump[0]};
  }
  // The target lies before what is known.
  EXPECT_FALSE(InX86({0xf3, 0x90, 0xeb, 0xfb}, 0x1000));
}

std::vector<uint8_t> WordsOf(std::initializer_list<uint32_t> words) {
  std::vector<uint8_t> bytes;
  for (const uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<uint8_t>(word >> shift));
    }
  }
  return bytes;
}

constexpr uint32_t kNop = 0xd503201f;
constexpr uint32_t kYield = 0xd503203f;

bool InArm64(const std::vector<uint8_t>& code, uint64_t at, uint64_t begin = 0x1000) {
  return IsInWaitLoop(code, begin, at, Isa::kArm64);
}

TEST(IsInWaitLoop, KnowsTheHintsOfArm64) {
  constexpr uint32_t kBack = 0x17ffffff;  // b .-4
  for (const uint32_t hint : {kYield, 0xd503205fu, 0xd5031000u, 0xd503101fu}) {
    EXPECT_TRUE(InArm64(WordsOf({hint, kBack}), 0x1000)) << std::hex << hint;
  }
  // NOP, WFI (a halt, no spin) and ISB are none.
  for (const uint32_t other : {kNop, 0xd503207fu, 0xd5033fdfu}) {
    EXPECT_FALSE(InArm64(WordsOf({other, kBack}), 0x1000)) << std::hex << other;
  }
}

TEST(IsInWaitLoop, KnowsTheBranchesOfArm64) {
  // To .-4: b, b.ne, cbnz w1, cbz x1, tbnz w1 #0, tbz x1 #40.
  for (const uint32_t branch :
       {0x17ffffffu, 0x54ffffe1u, 0x35ffffe1u, 0xb4ffffe1u, 0x3707ffe1u, 0xb647ffe1u}) {
    EXPECT_TRUE(InArm64(WordsOf({kYield, branch}), 0x1000)) << std::hex << branch;
    EXPECT_FALSE(InArm64(WordsOf({branch, kYield}), 0x1004)) << std::hex << branch;
  }
  EXPECT_FALSE(InArm64(WordsOf({kYield, 0x97ffffff}), 0x1000));  // bl: a call
  EXPECT_FALSE(InArm64(WordsOf({kYield, 0x14000001}), 0x1000));  // b .+4
}

// As guest.S of the lab: one loop beside the other.
TEST(IsInWaitLoop, TheNextFunctionIsAnother) {
  const std::vector<uint8_t> code =
      WordsOf({0x38606a81, 0x35ffffe1, kYield, 0x38606a81, 0x35ffffc1});
  EXPECT_FALSE(InArm64(code, 0x1000));
  EXPECT_FALSE(InArm64(code, 0x1004));
  for (const uint64_t at : {0x1008, 0x100c, 0x1010}) EXPECT_TRUE(InArm64(code, at)) << at;
}

// Four bytes across two instructions are none.
TEST(IsInWaitLoop, LooksAtWholeInstructionsOfArm64) {
  std::vector<uint8_t> code = {0, 0};
  const std::vector<uint8_t> words = WordsOf({kYield, 0x17ffffff});
  code.insert(code.end(), words.begin(), words.end());
  EXPECT_TRUE(InArm64(code, 0x1000, 0x0ffe));
  EXPECT_FALSE(InArm64(code, 0x0ffe, 0x0ffe));
  EXPECT_FALSE(InArm64(code, 0x1000, 0x1000));
  code.pop_back();
  EXPECT_FALSE(InArm64(code, 0x1000, 0x0ffe));
}

}  // namespace
}  // namespace vcpulse::kvm

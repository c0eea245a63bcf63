#include "monitor/hotspots/callers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/monitor/hotspots/orc_bytes.h"

namespace vcpulse::hotspots {
namespace {

using kvm::GuestMode;
using kvm::Isa;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kText = 0xffffffff81000000;
constexpr uint64_t kStack = 0xffff80000a000f00;

// Functions of 0x100 bytes each.
Symbols FourFunctions() {
  return Symbols::Of({{kText, true, "lock"},
                      {kText + 0x100, true, "take"},
                      {kText + 0x200, true, "wake"},
                      {kText + 0x300, true, "call"},
                      {kText + 0x400, true, "end"}});
}

// A look at a stack of these words.
kvm::StackLook Look(Isa isa, const std::vector<uint64_t>& words) {
  kvm::StackLook look{.registers = {.isa = isa,
                                    .at = {.address = kText + 0x10, .mode = GuestMode::kKernel},
                                    .stack = kStack}};
  look.memory.resize(words.size() * sizeof(uint64_t));
  std::memcpy(look.memory.data(), words.data(), look.memory.size());
  return look;
}

// Frame records at words 0, 2 and 5.
kvm::StackLook ArmLook() {
  kvm::StackLook look = Look(Isa::kArm64, {kStack + 16, kText + 0x140,     //
                                           kStack + 40, kText + 0x240, 7,  //
                                           0, kText + 0x340});
  look.registers.frame = kStack;
  look.registers.link = kText + 0x20;  // back from a call of its own
  return look;
}

TEST(CallersOf, FollowFrameRecords) {
  EXPECT_THAT(CallersOf(ArmLook(), {.symbols = FourFunctions()}),
              ElementsAre(kText + 0x140, kText + 0x240, kText + 0x340));
}

TEST(CallersOf, NeedNoSymbolsForThat) {
  EXPECT_THAT(CallersOf(ArmLook(), {}), ElementsAre(kText + 0x140, kText + 0x240, kText + 0x340));
}

// It has made no record: X29 is still its caller's, whose own caller is in that record.
TEST(CallersOf, AFunctionThatCallsNothingHasItsCallerInX30) {
  kvm::StackLook look = ArmLook();
  look.registers.link = kText + 0x1c0;  // in `take`
  look.registers.frame = kStack + 16;   // take's record: called by wake
  EXPECT_THAT(CallersOf(look, {.symbols = FourFunctions()}),
              ElementsAre(kText + 0x1c0, kText + 0x240, kText + 0x340));
}

TEST(CallersOf, AFunctionThatHasCalledNothingYetHasItOnce) {
  kvm::StackLook look = ArmLook();
  look.registers.link = kText + 0x140;
  EXPECT_THAT(CallersOf(look, {.symbols = FourFunctions()}),
              ElementsAre(kText + 0x140, kText + 0x240, kText + 0x340));
}

TEST(CallersOf, LoseTheirSignatures) {
  kvm::StackLook look = ArmLook();
  const uint64_t is_signed = (kText + 0x140) ^ (uint64_t{0x5a5a} << 48 & ~(uint64_t{1} << 55));
  std::memcpy(look.memory.data() + 8, &is_signed, sizeof(is_signed));
  EXPECT_EQ(CallersOf(look, {.symbols = FourFunctions()}).front(), kText + 0x140);
}

TEST(CallersOf, EndWhereTheNextIsNotCertain) {
  const GuestKernel kernel{.symbols = FourFunctions()};
  kvm::StackLook look = ArmLook();
  look.memory.resize(24);  // the second record is cut off
  EXPECT_THAT(CallersOf(look, kernel), ElementsAre(kText + 0x140));
  look = ArmLook();
  std::memcpy(look.memory.data(), &kStack, sizeof(kStack));  // a record that follows itself
  EXPECT_THAT(CallersOf(look, kernel), ElementsAre(kText + 0x140));
  look = ArmLook();
  const uint64_t unknown = kText + 0x1000;
  std::memcpy(look.memory.data() + 24, &unknown, sizeof(unknown));
  EXPECT_THAT(CallersOf(look, kernel), ElementsAre(kText + 0x140));
  look.registers.frame = 8;  // none of the stack
  EXPECT_THAT(CallersOf(look, kernel), IsEmpty());
  look.registers.frame = kStack - 8;
  EXPECT_THAT(CallersOf(look, kernel), IsEmpty());
  look.registers.frame = ~uint64_t{0};
  EXPECT_THAT(CallersOf(look, kernel), IsEmpty());
}

TEST(CallersOf, AreEightAtMost) {
  std::vector<uint64_t> words;
  for (uint64_t i = 0; i < 12; ++i) {
    words.push_back(kStack + 16 * (i + 1));
    words.push_back(kText + 0x140);
  }
  kvm::StackLook look = Look(Isa::kArm64, words);
  look.registers.frame = kStack;
  EXPECT_EQ(CallersOf(look, {}).size(), kMostCallers);
}

// `lock` has its caller right above, `take` pushed two words, `wake` goes by its frame register.
GuestKernel X86Kernel() {
  OrcBytes orc;
  orc.Add(kText, 8, 0, 0x05, 2);
  orc.Add(kText + 0x100, 24, -16, 0x15, 2);  // take: keeps the frame register at -16
  orc.Add(kText + 0x200, 16, -16, 0x14, 2);
  orc.Add(kText + 0x300, 0, 0, 0x05, 3);  // call: an interrupt's entry
  return {.symbols = FourFunctions(), .orc = OrcTable::Parse(orc.places, kOrcPlaces, orc.entries)};
}

kvm::StackLook X86Look() {
  kvm::StackLook look = Look(Isa::kX86, {kText + 0x140,                  // lock returns to take
                                         5, kStack + 48, kText + 0x240,  // take's frame, to wake
                                         6, 7, kStack + 96, kText + 0x340, 0, 0, 0, 0, 0, 0});
  look.registers.frame = 1;  // none that lock's frame needs
  return look;
}

TEST(CallersOf, FollowOrc) {
  EXPECT_THAT(CallersOf(X86Look(), X86Kernel()),
              ElementsAre(kText + 0x140, kText + 0x240, kText + 0x340));
}

// An entry says where the frame begins by a word in memory.
TEST(CallersOf, FollowWordsInMemory) {
  OrcBytes orc;
  orc.Add(kText, 8, 0, 0x09, 2);             // the word at the stack pointer, and 8
  orc.Add(kText + 0x100, -8, -24, 0x48, 2);  // the word at frame - 8; the frame kept at frame - 24
  orc.Add(kText + 0x200, 16, 0, 0x04, 2);    // frame + 16
  orc.Add(kText + 0x300, 8, 0, 0x05, 2);
  const GuestKernel kernel{.symbols = FourFunctions(),
                           .orc = OrcTable::Parse(orc.places, kOrcPlaces, orc.entries)};
  kvm::StackLook look = Look(Isa::kX86, {kStack + 8, kText + 0x140,    // lock's frame: from 16 on
                                         kStack + 72, 0, kStack + 56,  // frame - 24, ..., frame - 8
                                         0, kText + 0x240, 0, 0,       // take's frame: from 56 on
                                         0, kText + 0x340});           // wake's: from 88 on
  look.registers.frame = kStack + 40;
  EXPECT_THAT(CallersOf(look, kernel), ElementsAre(kText + 0x140, kText + 0x240, kText + 0x340));
}

// The frame record of an exception is of what it interrupted, which did not call.
TEST(CallersOf, EndAtAnExceptionOnArm) {
  const Symbols symbols = Symbols::Of({{kText, true, "lock"},
                                       {kText + 0x100, true, "el1h_64_irq"},
                                       {kText + 0x200, true, "wake"},
                                       {kText + 0x400, true, "end"}});
  EXPECT_THAT(CallersOf(ArmLook(), {.symbols = symbols}), ElementsAre(kText + 0x140));
}

TEST(CallersOf, AreOfX30WhereTheFrameIsNotOnTheStackThatWasRead) {
  kvm::StackLook look = ArmLook();
  look.registers.link = kText + 0x1c0;
  look.registers.frame = kStack + 4096;
  EXPECT_THAT(CallersOf(look, {.symbols = FourFunctions()}), ElementsAre(kText + 0x1c0));
}

TEST(CallersOf, NeedOrcOnX86) {
  EXPECT_THAT(CallersOf(X86Look(), {.symbols = FourFunctions()}), IsEmpty());
}

TEST(CallersOf, EndOnX86BeyondTheStackThatWasRead) {
  kvm::StackLook look = X86Look();
  look.memory.resize(32);  // up to the return to wake
  EXPECT_THAT(CallersOf(look, X86Kernel()), ElementsAre(kText + 0x140, kText + 0x240));
  look.memory.clear();
  EXPECT_THAT(CallersOf(look, X86Kernel()), IsEmpty());
}

// A call may be the last instruction of its function.
TEST(CallersOf, AReturnAddressIsOfTheFunctionBeforeIt) {
  kvm::StackLook look = X86Look();
  const uint64_t end_of_take = kText + 0x200;
  std::memcpy(look.memory.data(), &end_of_take, sizeof(end_of_take));
  EXPECT_THAT(CallersOf(look, X86Kernel()), ElementsAre(end_of_take, kText + 0x240, kText + 0x340));
}

}  // namespace
}  // namespace vcpulse::hotspots

#include "monitor/hotspots/known_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "monitor/hotspots/code_record.h"

namespace vcpulse::hotspots {
namespace {

// 4 KiB of NOPs at 0x10000 with a loop around a PAUSE: 0x10100 to 0x10103.
kvm::GuestCode SomeCode() {
  kvm::GuestCode code{.address = 0x10000, .bytes = std::vector<uint8_t>(4096, 0x90)};
  code.isa = kvm::Isa::kX86;
  code.bytes[0x100] = 0xf3;
  code.bytes[0x102] = 0xeb;
  code.bytes[0x103] = 0xfc;
  return code;
}

TEST(KnownCode, LooksAroundAnAddress) {
  KnownCode known;
  known.Add(SomeCode());
  EXPECT_EQ(known.WaitsAt(0x10100), true);
  EXPECT_EQ(known.WaitsAt(0x10102), true);
  EXPECT_EQ(known.WaitsAt(0x100ff), false);
  EXPECT_EQ(known.WaitsAt(0x10104), false);
  EXPECT_EQ(known.WaitsAt(0x10000), false);
  EXPECT_EQ(known.WaitsAt(0x10fff), false);
  EXPECT_EQ(known.WaitsAt(0x11000), std::nullopt);
  EXPECT_EQ(known.WaitsAt(0xffff), std::nullopt);
  EXPECT_EQ(KnownCode().WaitsAt(0), std::nullopt);
}

TEST(KnownCode, MovesWithItsKernel) {
  KnownCode known;
  known.Add(SomeCode());
  known.Move(0x200000);
  EXPECT_EQ(known.WaitsAt(0x10100), std::nullopt);
  EXPECT_EQ(known.WaitsAt(0x210100), true);
  const auto around = known.Around(0x210100);
  ASSERT_TRUE(around);
  EXPECT_EQ(around->address, 0x210100u - kvm::kCodeAround);
  EXPECT_EQ(around->bytes.size(), 2 * kvm::kCodeAround);
  EXPECT_EQ(around->bytes[kvm::kCodeAround], 0xf3);
}

// Code as a kernel has it: no 16 bytes of it come twice.
std::vector<uint8_t> ManyBytes() {
  std::vector<uint8_t> bytes;
  uint32_t state = 1;
  while (bytes.size() < 100'000) {
    state = state * 1664525 + 1013904223;  // Numerical Recipes' generator
    bytes.push_back(static_cast<uint8_t>(state >> 24));
  }
  return bytes;
}

kvm::GuestCode ReadAt(uint64_t place, uint64_t moved_by) {
  const std::vector<uint8_t> bytes = ManyBytes();
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(place);
  return {.address = 0x1000000 + place + moved_by, .bytes = {begin, begin + 64}};
}

TEST(KnownCode, TellsWhereItWasLoaded) {
  KnownCode known;
  known.Add({.address = 0x1000000, .bytes = ManyBytes()});
  kvm::GuestCode patched = ReadAt(70'000, 0xd800000);
  patched.bytes[5] ^= 1;
  EXPECT_EQ(known.LoadOffset(std::array{ReadAt(500, 0xd800000)}), 0xd800000u);
  EXPECT_EQ(known.LoadOffset(std::array{patched}), 0xd800000u);
  EXPECT_EQ(known.LoadOffset(std::array{ReadAt(500, 0)}), 0u);
  // A process, another kernel, a move by less than a page: none of it.
  EXPECT_EQ(known.LoadOffset(std::array{kvm::GuestCode{.bytes = std::vector<uint8_t>(64, 1)}}),
            std::nullopt);
  EXPECT_EQ(known.LoadOffset(std::array{ReadAt(500, 0x10)}), std::nullopt);
  EXPECT_EQ(known.LoadOffset({}), std::nullopt);
  // What most pieces say.
  EXPECT_EQ(known.LoadOffset(std::array{ReadAt(9'000, 0x200000), ReadAt(500, 0xd800000), patched}),
            0xd800000u);
  known.Move(0x200000);
  EXPECT_EQ(known.LoadOffset(std::array{ReadAt(500, 0xd800000)}), std::nullopt);
}

TEST(KnownCode, CodeThatComesTwiceTellsNothing) {
  KnownCode known;
  known.Add({.address = 0x1000, .bytes = std::vector<uint8_t>(1000, 0x90)});
  EXPECT_EQ(known.LoadOffset(std::array{
                kvm::GuestCode{.address = 0x201000, .bytes = std::vector<uint8_t>(64, 0x90)}}),
            std::nullopt);
}

TEST(CodeRecord, GivesTheCodeBack) {
  for (const kvm::Isa isa : {kvm::Isa::kX86, kvm::Isa::kArm64}) {
    const kvm::GuestCode code{.address = 0xffffffff81000000, .bytes = {1, 0, 255}, .isa = isa};
    EXPECT_EQ(CodeOf(RecordOf(code)), code);
  }
}

TEST(CodeRecord, OfALaterReleaseIsNone) {
  v1::GuestCode record = RecordOf({.address = 1, .bytes = {1}});
  record.set_isa(static_cast<v1::GuestCode::Isa>(7));
  EXPECT_EQ(CodeOf(record), std::nullopt);
  EXPECT_EQ(CodeOf(RecordOf({.address = 1, .bytes = std::vector<uint8_t>(257)})), std::nullopt);
}

}  // namespace
}  // namespace vcpulse::hotspots

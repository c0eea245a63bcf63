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

constexpr uint64_t kLinked = 0xffffffff81000000;

kvm::GuestCode ReadAt(uint64_t place, uint64_t moved_by) {
  const std::vector<uint8_t> bytes = ManyBytes();
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(place);
  return {.address = kLinked + place + moved_by, .bytes = {begin, begin + 64}};
}

using Found = KnownCode::Place::Found;

Found FoundOf(const KnownCode& known, const std::vector<kvm::GuestCode>& running) {
  return known.Locate(running).found;
}

TEST(KnownCode, TellsWhereItWasLoaded) {
  KnownCode known;
  known.Add({.address = kLinked, .bytes = ManyBytes()});
  kvm::GuestCode patched = ReadAt(70'000, 0xd800000);
  patched.bytes[5] ^= 1;
  for (const kvm::GuestCode& code : {ReadAt(500, 0xd800000), patched}) {
    const KnownCode::Place place = known.Locate(std::array{code});
    EXPECT_EQ(place.found, Found::kMoved);
    EXPECT_EQ(place.moved_by, 0xd800000u);
  }
  EXPECT_EQ(FoundOf(known, {ReadAt(500, 0)}), Found::kHere);
  // Another kernel, a move by less than a page.
  EXPECT_EQ(FoundOf(known, {{.address = kLinked, .bytes = std::vector<uint8_t>(64, 1)}}),
            Found::kNowhere);
  EXPECT_EQ(FoundOf(known, {ReadAt(500, 0x10)}), Found::kNowhere);
  // Half of a part is no proof, and one part alone is chance.
  kvm::GuestCode one_part = ReadAt(500, 0xd800000);
  one_part.bytes.resize(16);
  EXPECT_EQ(FoundOf(known, {one_part}), Found::kNowhere);
}

TEST(KnownCode, ProcessesAndNothingAreNotCompared) {
  KnownCode known;
  known.Add({.address = kLinked, .bytes = ManyBytes()});
  kvm::GuestCode user = ReadAt(500, 0);
  user.address = 0x401000;
  EXPECT_EQ(FoundOf(known, {user}), Found::kNotCompared);
  EXPECT_EQ(FoundOf(known, {}), Found::kNotCompared);
  EXPECT_EQ(FoundOf(KnownCode(), {ReadAt(500, 0)}), Found::kNotCompared);
}

// Where the offset is given, code that lies elsewhere speaks against it.
TEST(KnownCode, AnOffsetThatIsGivenIsChecked) {
  KnownCode known;
  known.Add({.address = kLinked, .bytes = ManyBytes()});
  known.Move(0x200000);
  EXPECT_EQ(FoundOf(known, {ReadAt(500, 0x200000)}), Found::kHere);
  EXPECT_EQ(FoundOf(known, {ReadAt(500, 0x201000)}), Found::kNowhere);
}

TEST(KnownCode, CodeThatComesTwiceTellsNothing) {
  KnownCode known;
  known.Add({.address = kLinked, .bytes = std::vector<uint8_t>(1000, 0x90)});
  EXPECT_EQ(
      FoundOf(known, {{.address = kLinked + 0x200000, .bytes = std::vector<uint8_t>(64, 0x90)}}),
      Found::kNowhere);
}

// A piece that begins within a loop does not hide one that has all of it.
TEST(KnownCode, AnyPieceMayHoldTheLoop) {
  KnownCode known;
  known.Add(SomeCode());
  known.Add({.address = 0x10102, .bytes = std::vector<uint8_t>(128, 0x90), .isa = kvm::Isa::kX86});
  EXPECT_EQ(known.WaitsAt(0x10102), true);
  EXPECT_EQ(known.WaitsAt(0x10110), false);
  // Whichever begins first.
  known.Add({.address = 0x100f0, .bytes = std::vector<uint8_t>(32, 0x90), .isa = kvm::Isa::kX86});
  known.Add({.address = 0x10000, .bytes = std::vector<uint8_t>(512, 0x90), .isa = kvm::Isa::kX86});
  known.Add({.address = 0x10100, .bytes = {0xf3, 0x90, 0xeb, 0xfc}, .isa = kvm::Isa::kX86});
  EXPECT_EQ(known.WaitsAt(0x10102), true);
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

#include "monitor/hotspots/known_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/hotspots/code_record.h"

namespace vcpulse::hotspots {
namespace {

// 4 KiB of NOPs at 0x10000 with a PAUSE at 0x10100.
kvm::GuestCode SomeCode() {
  kvm::GuestCode code{.address = 0x10000, .bytes = std::vector<uint8_t>(4096, 0x90)};
  code.isa = kvm::Isa::kX86;
  code.bytes[0x100] = 0xf3;
  return code;
}

TEST(KnownCode, LooksAroundAnAddress) {
  KnownCode known;
  known.Add(SomeCode());
  EXPECT_EQ(known.WaitsAt(0x10100), true);
  EXPECT_EQ(known.WaitsAt(0x10100 + kvm::kCodeAround), true);
  EXPECT_EQ(known.WaitsAt(0x10101 + kvm::kCodeAround), false);
  EXPECT_EQ(known.WaitsAt(0x10102 - kvm::kCodeAround), true);
  EXPECT_EQ(known.WaitsAt(0x10101 - kvm::kCodeAround), false);  // its last byte is beyond
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

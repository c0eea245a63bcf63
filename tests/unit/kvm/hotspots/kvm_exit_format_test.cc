#include "kvm/hotspots/kvm_exit_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/unit/kvm/tracing/kvm_exit_formats.h"

namespace vcpulse::kvm {
namespace {

std::vector<uint8_t> Record(std::initializer_list<std::pair<size_t, uint64_t>> words32,
                            size_t address_at, uint64_t address) {
  std::vector<uint8_t> record(40);
  for (const auto& [at, value] : words32) {
    const auto word = static_cast<uint32_t>(value);
    std::memcpy(record.data() + at, &word, sizeof(word));
  }
  std::memcpy(record.data() + address_at, &address, sizeof(address));
  return record;
}

// Other exits come where the guest's code asks for them: they are no sample of it.
TEST(KvmExitFormat, TakesTheAddressesOfInterruptExitsAlone) {
  const auto x86 = KvmExitFormat::From(*ParseTracepointFormat(kX86ExitFormat));
  ASSERT_TRUE(x86);
  EXPECT_EQ(x86->id(), 103u);
  const auto of_x86 = [&](uint64_t isa, uint64_t reason) {
    return x86->AddressOf(Record({{8, reason}, {24, isa}}, 16, 0xffffffff81000000));
  };
  EXPECT_EQ(of_x86(1, 1), 0xffffffff81000000u);
  EXPECT_EQ(of_x86(2, 0x60), 0xffffffff81000000u);
  EXPECT_EQ(of_x86(1, 12), std::nullopt);  // HLT
  EXPECT_EQ(of_x86(2, 1), std::nullopt);   // SVM has another number
  EXPECT_EQ(of_x86(1, 0x60), std::nullopt);
  EXPECT_EQ(of_x86(3, 1), std::nullopt);
  const auto arm = KvmExitFormat::From(*ParseTracepointFormat(kArmExitFormat));
  ASSERT_TRUE(arm);
  EXPECT_EQ(arm->AddressOf(Record({{8, 0}}, 16, 0xffff800008000000)), 0xffff800008000000u);
  EXPECT_EQ(arm->AddressOf(Record({{8, 2}}, 16, 0xffff800008000000)), std::nullopt);  // a trap
  EXPECT_EQ(arm->AddressOf(std::vector<uint8_t>(20)), std::nullopt);                  // cut
}

TEST(KvmExitFormat, IsNothingOfOtherFields) {
  TracepointFormat format = *ParseTracepointFormat(kX86ExitFormat);
  std::erase_if(format.fields, [](const auto& field) { return field.name == "isa"; });
  EXPECT_FALSE(KvmExitFormat::From(format));
}

}  // namespace
}  // namespace vcpulse::kvm

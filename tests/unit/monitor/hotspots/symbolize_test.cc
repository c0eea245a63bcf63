#include "monitor/hotspots/symbolize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/hotspots/code_record.h"
#include "monitor/hotspots/recorded_hotspots.h"

namespace vcpulse::hotspots {
namespace {

using ::testing::ElementsAre;

// 70 samples in spin at 0x1100, which PAUSEs, 20 in work at 0x2004, 8 of a process, 2 of a module.
v1::HotAddresses SomeWindow() {
  v1::HotAddresses hot;
  hot.set_vm(1);
  hot.set_source("cycles");
  hot.set_trigger(v1::HotAddresses::TRIGGER_SPINNING);
  const auto add = [&hot](uint64_t address, uint64_t samples, v1::GuestMode mode) {
    hot.add_addresses(address);
    hot.add_samples(samples);
    hot.add_modes(mode);
  };
  add(0x1100, 70, v1::GUEST_MODE_KERNEL);
  add(0x2004, 20, v1::GUEST_MODE_KERNEL);
  add(0x1100, 8, v1::GUEST_MODE_USER);
  add(0xffff0000, 2, v1::GUEST_MODE_KERNEL);
  return hot;
}

GuestKernel SomeKernel() {
  GuestKernel kernel{.symbols = *Symbols::Parse("1000 T spin\n2000 T work\n3000 T end\n")};
  kvm::GuestCode code{.address = 0x1000, .bytes = std::vector<uint8_t>(0x2000, 0x90)};
  code.isa = kvm::Isa::kX86;
  // At 0x1100:  nop; pause; jmp to the nop
  code.bytes[0x101] = 0xf3;
  code.bytes[0x103] = 0xeb;
  code.bytes[0x104] = 0xfb;
  kernel.code.Add(code);
  return kernel;
}

TEST(Symbolize, NamesWhatLiesInTheKernel) {
  v1::HotAddresses hot = SomeWindow();
  const Symbolized samples = Symbolize(SomeKernel(), hot);
  EXPECT_EQ(samples.named, 90u);
  EXPECT_EQ(samples.all, 92u);  // in kernel mode
  EXPECT_THAT(hot.functions(), ElementsAre("spin", "work", "", ""));
  EXPECT_THAT(hot.function_addresses(), ElementsAre(0x1000, 0x2000, 0, 0));
}

// A reader that has nothing but the file sees what one with the kernel's files sees.
TEST(Symbolize, ReadersNeedTheFileAlone) {
  RecordedHotspots plain;
  plain.Add({.sequence = 1, .record = SomeWindow()});
  v1::HotAddresses hot = SomeWindow();
  Symbolize(SomeKernel(), hot);
  RecordedHotspots named;
  named.Add({.sequence = 1, .record = hot});
  const GuestKernels kernels{.all = SomeKernel()};
  const auto expected = plain.Of(1, 0, kernels);
  const auto found = named.Of(1, 0, {});
  ASSERT_TRUE(expected && found);
  EXPECT_EQ(found->spots, expected->spots);
  EXPECT_EQ(expected->wait_share, 0.7);
  EXPECT_EQ(found->wait_share, expected->wait_share);
  EXPECT_THAT(JsonOf({*found}), ::testing::HasSubstr("\"wait_share\": 0.7"));
  EXPECT_EQ(plain.Of(1, 0, {})->wait_share, std::nullopt);
  // Symbols that are given come first.
  const GuestKernels other{.all = {.symbols = *Symbols::Parse("1000 T lock\n4000 T end\n")}};
  EXPECT_EQ(named.Of(1, 0, other)->spots.front().name, "lock");
}

TEST(Symbolize, ReplacesOlderNamesAndKeepsCode) {
  v1::HotAddresses hot = SomeWindow();
  Symbolize(SomeKernel(), hot);
  const int pieces = hot.code_size();
  EXPECT_EQ(pieces, 2);
  EXPECT_TRUE(hot.code(0).of_file());
  EXPECT_TRUE(CodeOf(hot).pieces.empty());
  EXPECT_EQ(Symbolize({.symbols = *Symbols::Parse("9 T far\n10 T end\n")}, hot).named, 0u);
  EXPECT_THAT(hot.functions(), ElementsAre("", "", "", ""));
  EXPECT_EQ(hot.code_size(), 0);
  EXPECT_EQ(Symbolize(SomeKernel(), hot).named, 90u);
  EXPECT_EQ(hot.code_size(), pieces);
}

// What was read from the guest stays, and speaks before the file of a kernel.
TEST(Symbolize, CodeOfTheGuestComesFirst) {
  v1::HotAddresses hot = SomeWindow();
  *hot.add_code() = RecordOf({.address = 0x1100, .bytes = std::vector<uint8_t>(64, 0x90)});
  hot.mutable_code(0)->set_isa(v1::GuestCode::ISA_X86);
  Symbolize(SomeKernel(), hot);
  ASSERT_EQ(hot.code_size(), 2);
  EXPECT_FALSE(hot.code(0).of_file());
  EXPECT_EQ(CodeOf(hot).pieces.size(), 1u);
  RecordedHotspots recorded;
  recorded.Add({.sequence = 1, .record = hot});
  EXPECT_EQ(recorded.Of(1, 0, {})->wait_share, 0.0);
  EXPECT_EQ(recorded.Of(1, 0, {.all = SomeKernel()})->wait_share, 0.0);
}

TEST(Symbolize, ADamagedFileMayHoldAnything) {
  v1::HotAddresses hot = SomeWindow();
  hot.clear_samples();
  hot.clear_modes();
  EXPECT_EQ(Symbolize(SomeKernel(), hot).named, 0u);
  hot = SomeWindow();
  for (int i = 0; i < 4; ++i) hot.add_functions(std::string(100'000, 'x'));
  for (int i = 0; i < 4; ++i) hot.add_function_addresses(7);
  RecordedHotspots recorded;
  recorded.Add({.sequence = 1, .record = hot});
  EXPECT_FALSE(recorded.Of(1, 0, {})->spots.front().named);
}

}  // namespace
}  // namespace vcpulse::hotspots

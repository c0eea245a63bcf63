#include "monitor/hotspots/placements.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "monitor/hotspots/code_record.h"

namespace vcpulse::hotspots {
namespace {

constexpr uint64_t kLinkedText = 0xffffffff81000000;

// No 16 bytes of it come twice.
std::vector<uint8_t> TextOfIt() {
  std::vector<uint8_t> bytes;
  for (uint32_t i = 0; bytes.size() < 4096; ++i) {
    bytes.push_back(static_cast<uint8_t>(i * i * 2654435761u >> 24));
  }
  return bytes;
}

GuestKernel LinkedKernel() {
  GuestKernel kernel;
  kernel.code.Add({.address = kLinkedText, .bytes = TextOfIt()});
  return kernel;
}

// A window whose code was read `by` higher than the kernel's file has it.
v1::HotAddresses MovedWindow(uint64_t by, uint32_t vm = 1) {
  v1::HotAddresses window;
  window.set_vm(vm);
  const std::vector<uint8_t> text = TextOfIt();
  *window.add_code() = RecordOf(
      {.address = kLinkedText + by + 1000, .bytes = {text.begin() + 1000, text.begin() + 1128}});
  return window;
}

TEST(Placements, AGuestMayBootAgain) {
  const GuestKernel kernel = LinkedKernel();
  Placements placements;
  placements.Add(5, {}, kernel);  // without code
  placements.Add(10, MovedWindow(0x200000), kernel);
  placements.Add(20, MovedWindow(0xda00000), kernel);
  placements.Add(30, MovedWindow(0), kernel);
  EXPECT_EQ(placements.MovedBy(1, 5), 0x200000u);
  EXPECT_EQ(placements.MovedBy(1, 10), 0x200000u);
  EXPECT_EQ(placements.MovedBy(1, 19), 0x200000u);
  EXPECT_EQ(placements.MovedBy(1, 20), 0xda00000u);
  EXPECT_EQ(placements.MovedBy(1, 99), 0u);
  EXPECT_EQ(placements.MovedBy(2, 20), 0u);
  EXPECT_FALSE(placements.IsAnotherKernel(1));
  EXPECT_FALSE(placements.IsAnotherKernel(2));
}

TEST(Placements, CodeThatIsNowhereIsOfAnotherKernel) {
  const GuestKernel kernel = LinkedKernel();
  Placements placements;
  v1::HotAddresses other = MovedWindow(0x200000, 3);
  other.mutable_code(0)->set_bytes(std::string(128, 'x'));
  placements.Add(1, other, kernel);
  EXPECT_TRUE(placements.IsAnotherKernel(3));
  placements.Add(2, MovedWindow(0x200000, 3), kernel);  // a module's before, perhaps
  EXPECT_FALSE(placements.IsAnotherKernel(3));
  // No search goes on for ever.
  for (int i = 0; i < Placements::kMostMisses; ++i) placements.Add(10, other, kernel);
  placements.Add(50, MovedWindow(0x600000, 3), kernel);
  EXPECT_EQ(placements.MovedBy(3, 50), 0x200000u);
}

// What `symbolize` took from a file itself proves nothing.
TEST(Placements, CodeOfAFileIsNoProof) {
  Placements placements;
  v1::HotAddresses window = MovedWindow(0x200000);
  window.mutable_code(0)->set_of_file(true);
  placements.Add(1, window, LinkedKernel());
  EXPECT_EQ(placements.MovedBy(1, 1), 0u);
  EXPECT_FALSE(placements.IsAnotherKernel(1));
}

}  // namespace
}  // namespace vcpulse::hotspots

// With this program itself as the kernel: an ELF file with symbols and code that the test knows.
#include "monitor/guest_image/vmlinux.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "kvm/base/fd.h"

#if defined(__x86_64__)
asm(".text\n"
    ".globl vcpulse_waits\n .type vcpulse_waits, @function\n"
    "vcpulse_waits: .skip 64, 0x90\n 1: pause\n jmp 1b\n .skip 64, 0x90\n ret\n"
    ".globl vcpulse_works\n"
    "vcpulse_works: .skip 128, 0x90\n ret\n"
    ".size vcpulse_waits, 133\n"
    // As a kernel's build writes them: the call of a function that pushed one word.
    ".section .orc_unwind_ip, \"a\"\n .long vcpulse_waits - .\n .long vcpulse_works - .\n"
    ".section .orc_unwind, \"a\"\n .short 16, 0\n .byte 5, 2\n .short 8, 0\n .byte 5, 2\n"
    ".text\n");
#else
asm(".text\n .balign 4\n"
    ".globl vcpulse_waits\n .type vcpulse_waits, %function\n"
    "vcpulse_waits: .rept 16\n nop\n .endr\n 1: yield\n b 1b\n .rept 16\n nop\n .endr\n ret\n"
    ".globl vcpulse_works\n"
    "vcpulse_works: .rept 32\n nop\n .endr\n ret\n");
#endif

extern "C" const char vcpulse_waits;
extern "C" const char vcpulse_works;

namespace vcpulse::guest_image {
namespace {

using ::testing::HasSubstr;

std::vector<uint8_t> OwnImage() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

absl::StatusOr<hotspots::GuestKernel> ReadOwn() {
  const Fd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  return ReadVmlinux(fd.get());
}

// The address that the file gives to what lies at `place` in this process.
uint64_t LinkedAddress(const void* place) {
  uint64_t moved_by = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        *static_cast<uint64_t*>(to) = info->dlpi_addr;
        return 1;  // the first one is the program
      },
      &moved_by);
  return reinterpret_cast<uintptr_t>(place) - moved_by;
}

TEST(Vmlinux, HasNamesAndCode) {
  const auto kernel = ReadOwn();
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const uint64_t waits = LinkedAddress(&vcpulse_waits);
  const uint64_t works = LinkedAddress(&vcpulse_works);
  EXPECT_EQ(kernel->code.WaitsAt(waits + 64), true);
  EXPECT_EQ(kernel->code.WaitsAt(works + 64), false);
  const auto in_waits = kernel->symbols.Find(waits + 64);
  ASSERT_TRUE(in_waits);
  EXPECT_EQ(in_waits->name, "vcpulse_waits");
  EXPECT_EQ(in_waits->address, waits);
  EXPECT_EQ(in_waits->offset, 64u);
  // Of assembly, without a type.
  const auto in_works = kernel->symbols.Find(works + 64);
  ASSERT_TRUE(in_works);
  EXPECT_EQ(in_works->name, "vcpulse_works");
}

#if defined(__x86_64__)
TEST(Vmlinux, HasItsUnwindTables) {
  const auto kernel = ReadOwn();
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto in_waits = kernel->orc.Find(LinkedAddress(&vcpulse_waits) + 64);
  ASSERT_TRUE(in_waits);
  EXPECT_EQ(in_waits->offset, 16);
  const auto in_works = kernel->orc.Find(LinkedAddress(&vcpulse_works));
  ASSERT_TRUE(in_works);
  EXPECT_EQ(in_works->offset, 8);
}
#endif

TEST(Vmlinux, FromMemoryIsTheSame) {
  const auto kernel = ParseVmlinux(OwnImage());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->code.WaitsAt(LinkedAddress(&vcpulse_waits) + 64), true);
}

TEST(Vmlinux, WhatIsNoneIsToldInWords) {
  const auto told = [](std::vector<uint8_t> bytes) {
    return std::string(ParseVmlinux(bytes).status().message());
  };
  EXPECT_THAT(told({}), HasSubstr("not an ELF file"));
  EXPECT_THAT(told({'\x7f', 'E', 'L', 'F'}), HasSubstr("not an ELF file"));
  std::vector<uint8_t> image = OwnImage();
  image[18] = 8;  // e_machine: MIPS
  image[19] = 0;
  EXPECT_THAT(told(image), HasSubstr("another architecture"));
  image = OwnImage();
  image[16] = 1;  // e_type: relocatable
  EXPECT_THAT(told(image), HasSubstr("not linked"));
  image = OwnImage();
  std::memset(image.data() + 40, 0, 8);  // e_shoff: no sections
  EXPECT_THAT(told(image), HasSubstr("no symbols"));
}

// A file that was cut off anywhere is told or half read, and never read beyond.
TEST(Vmlinux, ACutFileIsNoHarm) {
  const std::vector<uint8_t> image = OwnImage();
  int refused = 0;
  for (size_t parts = 1; parts < 20; ++parts) {
    const std::vector<uint8_t> cut(
        image.begin(), image.begin() + static_cast<ptrdiff_t>(image.size() * parts / 20));
    if (!ParseVmlinux(cut).ok()) ++refused;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace vcpulse::guest_image

#include <gtest/gtest.h>

#include "kvm/host.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::kvm {
namespace {

constexpr char kIntel[] =
    "processor\t: 0\n"
    "vendor_id\t: GenuineIntel\n"
    "cpu family\t: 6\n"
    "model\t\t: 85\n"
    "model name\t: Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz\n"
    "stepping\t: 7\n"
    "\n"
    "processor\t: 1\n"
    "vendor_id\t: AuthenticAMD\n"
    "cpu family\t: 25\n"
    "model\t\t: 17\n"
    "stepping\t: 1\n";

// "model name" is another field than "model", and the second processor another processor.
TEST(CpuIdentity, X86IsWhatCpuidSaysOfTheFirstProcessor) {
  EXPECT_EQ(ParseCpuIdentity(kIntel),
            (CpuIdentity{.vendor = "GenuineIntel", .family = 6, .model = 0x55, .stepping = 7}));
  // Nothing is taken from the second one that the first one lacks.
  EXPECT_EQ(ParseCpuIdentity("processor: 0\nvendor_id: GenuineIntel\nprocessor: 1\nmodel: 9\n"),
            (CpuIdentity{.vendor = "GenuineIntel"}));
}

TEST(CpuIdentity, Arm64IsTheMidr) {
  EXPECT_EQ(ParseCpuIdentity("processor\t: 0\n"
                             "BogoMIPS\t: 50.00\n"
                             "CPU implementer\t: 0x41\n"
                             "CPU architecture: 8\n"
                             "CPU variant\t: 0x3\n"
                             "CPU part\t: 0xd0c\n"
                             "CPU revision\t: 1\n"),
            (CpuIdentity{.vendor = "0x41", .family = 0, .model = 0xd0c, .stepping = 0x31}));
}

TEST(CpuIdentity, WhatCannotBeReadIsEmpty) {
  EXPECT_EQ(ParseCpuIdentity(""), CpuIdentity{});
  EXPECT_EQ(ParseCpuIdentity("cpu\t\t: POWER9, altivec supported\n"), CpuIdentity{});
  EXPECT_EQ(ParseCpuIdentity("vendor_id: GenuineIntel\nmodel: 4294967296\nstepping: unknown\n"),
            (CpuIdentity{.vendor = "GenuineIntel"}));
  EXPECT_EQ(ParseCpuIdentity("vendor_id: a vendor of more than twelve\n"), CpuIdentity{});
  EXPECT_EQ(ParseCpuIdentity("CPU implementer: 0xzz\nCPU part: 0xd0c\n"), CpuIdentity{});
}

TEST(CpuIdentity, IsReadBelowTheRoot) {
  fakes::ProcDir proc;
  EXPECT_EQ(ReadCpuIdentity(proc.root()), CpuIdentity{});
  proc.Write("proc/cpuinfo", kIntel);
  EXPECT_EQ(ReadCpuIdentity(proc.root()).model, 0x55u);
}

}  // namespace
}  // namespace vcpulse::kvm

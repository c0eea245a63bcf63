#include <gtest/gtest.h>

#include <vector>

#include "kvm/base/clock.h"
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
    "microcode\t: 0x5003707\n"
    "\n"
    "processor\t: 1\n"
    "vendor_id\t: AuthenticAMD\n"
    "cpu family\t: 25\n"
    "model\t\t: 17\n"
    "stepping\t: 1\n";

// "model name" is another field than "model", and the second processor another processor.
TEST(CpuIdentity, X86IsWhatCpuidSaysOfTheFirstProcessor) {
  EXPECT_EQ(ParseCpuIdentity(kIntel), (CpuIdentity{.vendor = "GenuineIntel",
                                                   .family = 6,
                                                   .model = 0x55,
                                                   .stepping = 7,
                                                   .microcode = "0x5003707"}));
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

// A clock of 3 GHz, read at `at_ns`, the counter `late_ns` after the first reading of the clock.
BracketedReading ReadAt(int64_t at_ns, int64_t late_ns, int64_t width_ns) {
  return {.before_ns = at_ns,
          .count = static_cast<uint64_t>(3 * (at_ns + late_ns)),
          .after_ns = at_ns + width_ns};
}

constexpr int64_t kMs = 1'000'000;
constexpr double kTenPpm = 3e9 * 10e-6;

// The thread was preempted for 5 ms between clock and counter, at either end, first or last.
TEST(RateBetween, APreemptedReadingIsNotTheOneThatCounts) {
  const BracketedReading preempted = ReadAt(0, 5 * kMs, 5 * kMs + 40);
  const std::vector<BracketedReading> begin = {preempted, ReadAt(6 * kMs, 20, 40)};
  const std::vector<BracketedReading> end = {
      ReadAt(26 * kMs, 15, 40), ReadAt(27 * kMs, 1 * kMs, 5 * kMs), ReadAt(33 * kMs, 90, 100)};
  ASSERT_TRUE(RateBetween(begin, end).has_value());
  EXPECT_NEAR(*RateBetween(begin, end), 3e9, kTenPpm);
}

// The counter is taken to be read in the middle of its bracket: late at both ends cancels out, and
// what does not is half a bracket.
TEST(RateBetween, TheMiddleOfTheBracketCounts) {
  const std::vector<BracketedReading> begin = {ReadAt(kMs, 500, 1000)};
  const std::vector<BracketedReading> end = {ReadAt(21 * kMs, 50, 100)};
  EXPECT_NEAR(*RateBetween(begin, end), 3e9, 1);
}

TEST(RateBetween, NoTimeBetweenIsNoRate) {
  const std::vector<BracketedReading> once = {ReadAt(kMs, 20, 40)};
  const std::vector<BracketedReading> later = {ReadAt(2 * kMs, 20, 40)};
  EXPECT_FALSE(RateBetween(once, once).has_value());
  EXPECT_FALSE(RateBetween(later, once).has_value());
  EXPECT_FALSE(RateBetween({}, once).has_value());
  EXPECT_FALSE(RateBetween(once, {}).has_value());
}

// A step of the wall clock has no part in it.
TEST(Deadline, IsOverByItsClockAlone) {
  static int64_t now_ns;
  now_ns = 5'000'000'000;
  const Deadline deadline(absl::Seconds(2), [] { return now_ns; });
  EXPECT_EQ(deadline.left(), absl::Seconds(2));
  now_ns += 1'999'999'999;
  EXPECT_FALSE(deadline.over());
  now_ns += 1;
  EXPECT_TRUE(deadline.over());
  EXPECT_FALSE(Deadline(absl::InfiniteDuration()).over());
  EXPECT_TRUE(Deadline(absl::ZeroDuration()).over());
}

}  // namespace
}  // namespace vcpulse::kvm

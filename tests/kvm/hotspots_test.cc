// `vcpulse hotspots` on a real guest whose code is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>
#include <string>

#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

using ::testing::HasSubstr;

TEST(Hotspots, RegistersFindTheLoopOfABusyGuest) {
  if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
  const auto guest =
      QemuGuest::Start({.vcpus = 2, .qmp_unix = true, .program = GuestProgram::kBusy});
  ASSERT_TRUE(guest.ok()) << guest.status();
  ASSERT_TRUE(guest->WaitForProgram(kLong));
  const Finished finished = RunProgram(Vcpulse({"hotspots", "--qmp", guest->qmp_unix(), "--source",
                                                "qmp", "--vcpu", "0", "-d", "2s", "--json"}));
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("qmp stops the vCPUs for a moment"));
  const auto json = boost::json::parse(finished.out);
  ASSERT_EQ(json.at("vcpus").as_array().size(), 1u);
  const auto& vcpu = json.at("vcpus").at(0);
  EXPECT_EQ(vcpu.at("source"), "qmp");
  EXPECT_GE(vcpu.at("samples").to_number<int>(), 5);
  EXPECT_LE(vcpu.at("samples").to_number<int>(), 9);
  // A loop of a few instructions: all samples lie within some bytes.
  std::set<uint64_t> addresses;
  for (const auto& spot : vcpu.at("spots").as_array()) {
    EXPECT_EQ(spot.at("mode"), "kernel");
    addresses.insert(std::stoull(spot.at("name").as_string().c_str(), nullptr, 16));
  }
  EXPECT_LT(*addresses.rbegin() - *addresses.begin(), 16u);
}

// What was sampled until its end is printed.
TEST(Hotspots, AVmThatEndsKeepsWhatItHas) {
  if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
  auto guest = QemuGuest::Start({.vcpus = 2, .qmp_unix = true, .program = GuestProgram::kBusy});
  ASSERT_TRUE(guest.ok()) << guest.status();
  ASSERT_TRUE(guest->WaitForProgram(kLong));
  RunningProgram sampling(
      Vcpulse({"hotspots", "--qmp", guest->qmp_unix(), "--source", "qmp", "-d", "60s"}));
  absl::SleepFor(absl::Seconds(2));
  guest->Kill();
  const Finished finished = sampling.Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr(") has ended"));
  EXPECT_THAT(finished.out,
              testing::ContainsRegex("vCPU 0: [3-9] samples in [1-9]\\.[0-9] s by qmp\n"));
}

TEST(Hotspots, AHaltedVcpuRunsNowhere) {
  if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
  const auto guest = QemuGuest::Start({.qmp_unix = true, .program = GuestProgram::kHalt});
  ASSERT_TRUE(guest.ok()) << guest.status();
  ASSERT_TRUE(guest->WaitForProgram(kLong));
  const Finished finished =
      RunProgram(Vcpulse({"hotspots", "--qmp", guest->qmp_unix(), "--source", "qmp", "-d", "1s"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out,
              testing::ContainsRegex("vCPU 0: 0 samples in .* by qmp, [3-5] while halted"));
}

TEST(Hotspots, WhatIsWrongIsToldInALine) {
  const auto told = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "hotspots");
    const Finished finished = RunProgram(Vcpulse(arguments));
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_EQ(finished.out, "");
    return finished.err;
  };
  EXPECT_THAT(told({"-d", "5"}), HasSubstr("has no unit: write 5s or 5ms"));
  EXPECT_THAT(told({"--guest-kaslr-offset", "1000"}), HasSubstr("needs --guest-kallsyms"));
  EXPECT_THAT(told({"--source", "tea"}), HasSubstr("tea"));
  EXPECT_THAT(told({"--vm", "no-such-vm-anywhere"}), HasSubstr("no-such-vm-anywhere"));
  EXPECT_THAT(told({"--guest-kallsyms", "/none"}), HasSubstr("/none"));
  EXPECT_THAT(told({"--guest-system-map", "/etc/passwd"}),
              HasSubstr("/etc/passwd: not a kallsyms or System.map: line 1"));
}

}  // namespace
}  // namespace vcpulse::kvm_tests

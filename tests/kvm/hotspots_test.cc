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

TEST(Hotspots, WhatIsWrongIsToldInALine) {
  const auto told = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "hotspots");
    const Finished finished = RunProgram(Vcpulse(arguments));
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_EQ(finished.out, "");
    return finished.err;
  };
  EXPECT_THAT(told({"-d", "0"}), HasSubstr("from 10ms to 1h"));
  EXPECT_THAT(told({"--source", "tea"}), HasSubstr("tea"));
  EXPECT_THAT(told({"--vm", "no-such-vm-anywhere"}), HasSubstr("no-such-vm-anywhere"));
  EXPECT_THAT(told({"--guest-kallsyms", "/none"}), HasSubstr("cannot read /none"));
  EXPECT_THAT(told({"--guest-system-map", "/etc/passwd"}),
              HasSubstr("/etc/passwd: no kallsyms and no System.map"));
}

}  // namespace
}  // namespace vcpulse::kvm_tests

// `vcpulse hotspots` on a real guest whose code is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <boost/json.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
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

// What it does there is read from its memory, where that was asked for.
TEST(Hotspots, TheCodeOfALoopTellsWhetherItWaits) {
  if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
  for (const GuestProgram program : {GuestProgram::kPause, GuestProgram::kBusy}) {
    const auto guest = QemuGuest::Start({.qmp_unix = true, .program = program});
    ASSERT_TRUE(guest.ok()) << guest.status();
    ASSERT_TRUE(guest->WaitForProgram(kLong));
    std::vector<std::string> command = {"hotspots", "--qmp", guest->qmp_unix(), "--source", "qmp",
                                        "-d",       "1s",    "--json"};
    const Finished without = RunProgram(Vcpulse(command));
    ASSERT_EQ(without.exit_code, 0) << without.err;
    EXPECT_TRUE(boost::json::parse(without.out).at("vcpus").at(0).at("wait_share").is_null());
    command.push_back("--guest-code");
    const Finished finished = RunProgram(Vcpulse(command));
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(
        boost::json::parse(finished.out).at("vcpus").at(0).at("wait_share").to_number<double>(),
        program == GuestProgram::kPause ? 1.0 : 0.0);
  }
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

// A starved vCPU: another process on its CPU. Its loop is in the timeline, and named from there.
TEST(Hotspots, ARecordingKeepsWhereAStarvedVcpuWas) {
  if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
  const auto guest =
      QemuGuest::Start({.name = "web", .qmp_unix = true, .program = GuestProgram::kBusy});
  ASSERT_TRUE(guest.ok()) << guest.status();
  ASSERT_TRUE(guest->WaitForProgram(kLong));
  const std::string cpu = std::to_string(sched_getcpu());
  ASSERT_EQ(RunProgram({"taskset", "-a", "-cp", cpu, std::to_string(guest->pid())}).exit_code, 0);
  RunningProgram rival({"taskset", "-c", cpu, "sh", "-c", "while :; do :; done"});
  const std::string file = testing::TempDir() + "hotspots.vpt";
  const Finished recorded =
      RunProgram(Vcpulse({"record", "--qmp", guest->qmp_unix(), "--hotspots", "both",
                          "--hotspots-source", "qmp", "-d", "3s", "-o", file}));
  rival.Signal(SIGKILL);
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;

  const Finished found = RunProgram(Vcpulse({"hotspots", file, "--json"}));
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const auto json = boost::json::parse(found.out);
  ASSERT_EQ(json.at("vcpus").as_array().size(), 1u);
  const auto& vcpu = json.at("vcpus").at(0);
  EXPECT_EQ(vcpu.at("vm"), "web");
  EXPECT_EQ(vcpu.at("windows").at("starved"), 1);
  EXPECT_EQ(vcpu.at("windows").at("spinning"), 0);
  EXPECT_EQ(vcpu.at("source"), "qmp");
  EXPECT_GE(vcpu.at("samples").to_number<int>(), 2);
  for (const auto& spot : vcpu.at("spots").as_array()) EXPECT_FALSE(spot.at("named").as_bool());

  const std::string map = testing::TempDir() + "hotspots.map";
  std::ofstream(map) << "fffffe00 t loop\nffffff00 t end\n";
  const Finished report = RunProgram(Vcpulse({"report", file, "--guest-symbols", "web=" + map}));
  EXPECT_THAT(report.out, testing::ContainsRegex("hot, vCPU 0: 100.0 % loop of [2-5] samples by "
                                                 "qmp, 1 window after starvation"));
  // Once the file has the names itself, nobody needs the map.
  const std::string named = testing::TempDir() + "named.vpt";
  const Finished symbolized =
      RunProgram(Vcpulse({"symbolize", file, "--guest-system-map", map, "-o", named}));
  EXPECT_EQ(symbolized.exit_code, 0) << symbolized.err;
  EXPECT_THAT(symbolized.err,
              testing::ContainsRegex("named [2-5] of [2-5] samples in kernel mode, of 1 window"));
  EXPECT_THAT(RunProgram(Vcpulse({"report", named})).out, HasSubstr("100.0 % loop of"));
  const Finished checked = RunProgram(
      Vcpulse({"check", named, "--allow-skip", "--expect", "vcpu=0: hot(\"lo*\") >= 10%"}));
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  // Moved by the offset of its VM: 0x1000 lower in the file.
  std::ofstream(map) << "ffffee00 t loop\nffffef00 t end\n";
  const std::vector<std::string> moved = {"report", file, "--guest-symbols", "web=" + map};
  EXPECT_THAT(RunProgram(Vcpulse(moved)).out, testing::ContainsRegex("no[ \n]+symbol[ \n]+fits:"));
  std::vector<std::string> with_offset = moved;
  with_offset.insert(with_offset.end(), {"--guest-kaslr-offset", "web=0x1000"});
  EXPECT_THAT(RunProgram(Vcpulse(with_offset)).out, HasSubstr("100.0 % loop of"));
  const Finished other =
      RunProgram(Vcpulse({"report", file, "--json", "--guest-symbols", "db=" + map}));
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_THAT(other.out,
              testing::AllOf(HasSubstr("\"0xfffffe0"), testing::Not(HasSubstr("\"loop"))));
  EXPECT_THAT(other.err, HasSubstr("--guest-symbols: no VM is called 'db'"));
}

TEST(Hotspots, ATimelineWithoutAnySaysWhy) {
  const std::string file = std::string(VCPULSE_TEST_DATA) + "/timeline-v2.vpt";
  const Finished finished = RunProgram(Vcpulse({"hotspots", file}));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, HasSubstr("none were asked for"));
}

// What is damaged is said, as `merge` says it.
TEST(Hotspots, SymbolizeTellsOfDamage) {
  const std::string golden = std::string(VCPULSE_TEST_DATA) + "/timeline-v5.vpt";
  const std::string map = testing::TempDir() + "v5.map";
  std::ofstream(map) << "ffffffff81000000 t lock\nffffffff81001000 t end\n";
  std::ifstream in(golden, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  bytes[200] = static_cast<char>(bytes[200] ^ 1);  // in the first chunk
  const std::string damaged = testing::TempDir() + "damaged.vpt";
  std::ofstream(damaged, std::ios::binary) << bytes;
  const Finished finished = RunProgram(Vcpulse(
      {"symbolize", damaged, "--guest-system-map", map, "-o", testing::TempDir() + "mended.vpt"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("skipped 1 damaged region"));
  EXPECT_THAT(finished.err, HasSubstr("earlier records are not here"));
  EXPECT_THAT(finished.err, HasSubstr("named 60 of 70 samples in kernel mode, of 1 window"));
}

TEST(Hotspots, SymbolizeRefusesInALine) {
  const std::string out = testing::TempDir() + "refused.vpt";
  const std::string map = testing::TempDir() + "some.map";
  std::ofstream(map) << "1000 t loop\n2000 t end\n";
  const std::string golden = std::string(VCPULSE_TEST_DATA) + "/timeline-v3.vpt";
  const std::string none = std::string(VCPULSE_TEST_DATA) + "/timeline-v2.vpt";
  const auto told = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "symbolize");
    const Finished finished = RunProgram(Vcpulse(arguments));
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_FALSE(std::filesystem::exists(out));
    return finished.err;
  };
  EXPECT_THAT(told({golden, "-o", out}), HasSubstr("no symbols are given"));
  EXPECT_THAT(told({golden, "--guest-kallsyms", map}), HasSubstr("--output is required"));
  EXPECT_THAT(told({none, "-o", out, "--guest-kallsyms", map}),
              HasSubstr("holds no hot addresses"));
  EXPECT_THAT(told({golden, "-o", out, "--guest-kallsyms", map}),
              HasSubstr("no address lies in the symbols"));
  EXPECT_THAT(told({golden, "-o", golden, "--guest-kallsyms", map}),
              HasSubstr("is the file that is read"));
  EXPECT_THAT(told({golden, "-o", map, "--guest-kallsyms", map}),
              HasSubstr("is the file that is read"));
  EXPECT_THAT(told({golden, "-o", out, "--guest-symbols", "web=" + map}),
              HasSubstr("no VM is called 'web'; there is counted"));
  EXPECT_THAT(told({"-", "-o", out, "--guest-kallsyms", map}), HasSubstr("standard input"));
  EXPECT_THAT(told({golden, "-o", "/dev/full", "--guest-kallsyms", map}),
              testing::Not(testing::IsEmpty()));
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
  EXPECT_THAT(told({"--guest-kaslr-offset", "web=10"}),
              HasSubstr("'web=10': --guest-symbols gives that VM no file"));
  EXPECT_THAT(told({"--guest-kaslr-offset", "web=tea"}), HasSubstr("hexadecimal digits"));
  EXPECT_THAT(told({"--guest-code"}), HasSubstr("--guest-code needs --qmp"));
  EXPECT_THAT(told({"--source", "tea"}), HasSubstr("tea"));
  EXPECT_THAT(told({"--vm", "no-such-vm-anywhere"}), HasSubstr("no-such-vm-anywhere"));
  EXPECT_THAT(told({"--guest-kallsyms", "/none"}), HasSubstr("/none"));
  EXPECT_THAT(told({"--guest-system-map", "/etc/passwd"}),
              HasSubstr("/etc/passwd: not a kallsyms or System.map: line 1"));
  EXPECT_THAT(told({"--guest-vmlinux", "/etc/passwd"}), HasSubstr("/etc/passwd: not a kallsyms"));
  const std::string image = testing::TempDir() + "vmlinuz";
  std::ofstream(image) << "MZ and so on";
  EXPECT_THAT(told({"--guest-vmlinux", image}), HasSubstr("a compressed kernel has no symbols"));
  std::ofstream(image) << "\177ELF and no more";
  EXPECT_THAT(told({"--guest-vmlinux", image}), HasSubstr("not a vmlinux: it is not an ELF file"));
  EXPECT_THAT(told({"--source", "qmp", "-F", "50"}), HasSubstr("--frequency is that of"));
  const std::string golden = std::string(VCPULSE_TEST_DATA) + "/timeline-v3.vpt";
  EXPECT_THAT(told({"--vcpu", "7", golden}), HasSubstr("holds no hot addresses"));
  EXPECT_THAT(told({golden, "--vm", "nobody"}), HasSubstr("no VM 'nobody'"));
  EXPECT_THAT(told({"--guest-symbols", "web"}), HasSubstr("VM=FILE is needed"));
  EXPECT_THAT(told({"no-such.vpt"}), HasSubstr("no-such.vpt"));
  EXPECT_THAT(told({"no-such.vpt", "--source", "qmp"}), HasSubstr("cannot be used together"));
  EXPECT_THAT(RunProgram(Vcpulse({"record", "--hotspots", "always"})).err,
              HasSubstr("known are spinning, starved, both"));
  EXPECT_THAT(RunProgram(Vcpulse({"record", "--hotspots-source", "qmp"})).err,
              HasSubstr("--hotspots-source needs --hotspots"));
  EXPECT_THAT(RunProgram(Vcpulse({"record", "--guest-code"})).err,
              HasSubstr("--guest-code needs --hotspots"));
  EXPECT_THAT(RunProgram(Vcpulse({"record", "--hotspots", "both", "--guest-code"})).err,
              HasSubstr("--guest-code needs --qmp"));
}

}  // namespace
}  // namespace vcpulse::kvm_tests

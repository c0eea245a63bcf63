// Which code of a real Linux guest is hot, as `vcpulse hotspots` says it, against perf's samples of
// the same thread in the same phase (tools/lab.d/scenarios/hotspots). With icount: without it QEMU
// delivers overflows at the borders of its translated blocks, and perf's own shares differ from run
// to run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "boost/json.hpp"
#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

std::string Output(const std::string& name) { return ReadText(OutputPath("hotspots-1", name)); }

struct Hot {
  uint64_t samples = 0;
  uint64_t kernel = 0;
  uint64_t kernel_named = 0;
  uint64_t user = 0;
  uint64_t user_named = 0;
  std::string top;                       // of the kernel
  std::map<std::string, double> shares;  // by name

  double Share(uint64_t part) const {
    return static_cast<double>(part) / static_cast<double>(samples);
  }
};

Hot Read(const std::string& step) {
  const boost::json::value vcpu = boost::json::parse(Output(step + ".out")).at("vcpus").at(0);
  Hot hot{.samples = vcpu.at("samples").to_number<uint64_t>()};
  EXPECT_EQ(vcpu.at("lost"), 0) << step;
  uint64_t sum = 0;
  for (const auto& spot : vcpu.at("spots").as_array()) {
    const auto samples = spot.at("samples").to_number<uint64_t>();
    const std::string name = spot.at("name").as_string().c_str();
    const bool named = spot.at("named").as_bool();
    sum += samples;
    hot.shares[name] += spot.at("share").to_number<double>();
    if (spot.at("mode") == "kernel") {
      hot.kernel += samples;
      if (named) hot.kernel_named += samples;
      if (hot.top.empty()) hot.top = name;
    } else {
      hot.user += samples;
      if (named) hot.user_named += samples;
    }
  }
  EXPECT_EQ(sum, hot.samples) << step;
  return hot;
}

// Of perf's own samples: "... PERF_RECORD_SAMPLE(IP, MODE): PID/TID: ADDRESS ...", 4 is the guest's
// kernel. Named by the same kallsyms, looked up line by line rather than by our table.
Hot PerfOf(const std::string& step) {
  static const std::map<uint64_t, std::string> names = [] {
    std::map<uint64_t, std::string> all;
    std::istringstream text(Output("kallsyms"));
    for (std::string line; std::getline(text, line);) {
      std::istringstream words(line);
      std::string address, type, name;
      words >> address >> type >> name;
      if (!name.starts_with("$")) all.try_emplace(std::stoull(address, nullptr, 16), name);
    }
    return all;
  }();
  Hot hot;
  std::map<std::string, uint64_t> counts;
  std::istringstream text(Output(step + "-samples.out"));
  for (std::string line; std::getline(text, line);) {
    const bool kernel = line.find("(IP, 0x4)") != std::string::npos;
    const uint64_t address = std::stoull(line.substr(line.find(": 0x") + 2), nullptr, 16);
    ++hot.samples;
    ++(kernel ? hot.kernel : hot.user);
    std::ostringstream name;
    if (kernel) {
      name << std::prev(names.upper_bound(address))->second;
    } else {
      name << "0x" << std::hex << address;
    }
    ++counts[name.str()];
  }
  for (const auto& [name, count] : counts) hot.shares[name] = hot.Share(count);
  return hot;
}

void ExpectAgree(const Hot& ours, const Hot& perf) {
  EXPECT_NEAR(static_cast<double>(ours.samples) / static_cast<double>(perf.samples), 1, 0.05);
  EXPECT_NEAR(ours.Share(ours.kernel), perf.Share(perf.kernel), 0.05);
  for (const auto& [name, share] : perf.shares) {
    if (share < 0.05) continue;
    const auto found = ours.shares.find(name);
    EXPECT_NEAR(found == ours.shares.end() ? 0 : found->second, share, 0.05) << name;
  }
}

TEST(LabHotspots, ACopyInTheKernelIsNamed) {
  const Hot hot = Read("kernel");
  EXPECT_EQ(hot.top, "__arch_clear_user");  // dd of /dev/zero
  EXPECT_NEAR(static_cast<double>(hot.samples), 3 * 499, 0.05 * 3 * 499);
  EXPECT_GE(static_cast<double>(hot.kernel_named), 0.95 * static_cast<double>(hot.kernel));
  EXPECT_EQ(hot.user_named, 0u);
  ExpectAgree(hot, PerfOf("kernel"));
}

// Their number says little here: in user mode the emulated PMU's overflows mostly come with the
// guest's next timer tick (perf's too), so half of the samples are in that tick.
TEST(LabHotspots, ALoopInUserModeHasAddressesWithoutNames) {
  const Hot hot = Read("user");
  EXPECT_GT(hot.user, 20u);
  EXPECT_EQ(hot.user_named, 0u);
  EXPECT_GT(PerfOf("user").user, 20u);
  EXPECT_GE(static_cast<double>(hot.kernel_named), 0.95 * static_cast<double>(hot.kernel));
  EXPECT_LT(Read("kernel").user, 20u);
}

// Guest time alone overflows the counter.
TEST(LabHotspots, AnIdleGuestHasFewSamples) {
  EXPECT_LT(Read("idle").samples, Read("kernel").samples / 10);
}

TEST(LabHotspots, ExitsAndRegistersShowTheSameCode) {
  const Hot exits = Read("kernel-exits");
  EXPECT_EQ(exits.top, "__arch_clear_user");
  EXPECT_GT(exits.samples, 300u);
  const Hot registers = Read("kernel-qmp");
  EXPECT_GE(registers.samples, 4u);
  EXPECT_LE(registers.samples, 9u);  // four a second at most
  EXPECT_GE(static_cast<double>(registers.kernel_named),
            0.95 * static_cast<double>(registers.kernel));
}

// dd reads: fs/read_write.c has vfs_read and ksys_read, and the clearing of its buffer is called
// from there through one or two functions that differ from version to version.
TEST(LabHotspots, CallersAreThoseOfARead) {
  const boost::json::value vcpu =
      boost::json::parse(Output("kernel-callers.out")).at("vcpus").at(0);
  uint64_t in_copy = 0;
  uint64_t of_read = 0;
  for (const auto& stack : vcpu.at("stacks").as_array()) {
    std::vector<std::string> names;
    for (const auto& frame : stack.at("frames").as_array()) {
      names.emplace_back(frame.at("name").as_string().c_str());
    }
    if (names.front() != "__arch_clear_user") continue;
    const auto samples = stack.at("samples").to_number<uint64_t>();
    in_copy += samples;
    const auto read = std::ranges::find(names, "vfs_read");
    if (read != names.end() && read + 1 != names.end() && *(read + 1) == "ksys_read") {
      of_read += samples;
    }
  }
  EXPECT_GE(in_copy, 5u);  // of five seconds; each look takes its time on an emulated host
  EXPECT_GE(static_cast<double>(of_read), 0.9 * static_cast<double>(in_copy));
}

TEST(LabHotspots, TextSaysHowItWasSampled) {
  EXPECT_THAT(
      Output("kernel-text.out"),
      testing::ContainsRegex("^VM linux \\(PID [0-9]+\\) vCPU 0: [0-9]+ samples in 1\\.[0-9] "
                             "s by cycles\n"));
  EXPECT_THAT(Output("kernel-qmp.err"), testing::HasSubstr("qmp stops the vCPUs for a moment"));
}

}  // namespace
}  // namespace vcpulse::lab

// What the command may do while it runs, as /proc says. Needs no guest.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "kvm/base/fd.h"
#include "kvm/own_rights.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

// CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER.
constexpr uint64_t kFiles = 0b1111;
constexpr uint64_t kLowPorts = uint64_t{1} << 10;  // CAP_NET_BIND_SERVICE

// The lines of /proc/PID/status, by their labels; empty before it is vcpulse, and after its end.
std::map<std::string, std::string> StatusOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::map<std::string, std::string> status;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string label;
    words >> label >> status[label];
  }
  if (status["Name:"] != "vcpulse") status.clear();
  return status;
}

class DroppedRights : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "not root: there is nothing to drop";
    own_ = kvm::ReadOwnRights("/").effective.value_or(0);
  }

  // The rights of the command once it has dropped what it drops; it is left reading a pipe.
  std::map<std::string, std::string> RightsOf(std::vector<std::string> arguments) {
    constexpr int kPassedOn = 9;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {};
    const Fd read_end(ends[0]);
    const Fd write_end(ends[1]);
    dup2(read_end.get(), kPassedOn);
    arguments.insert(arguments.begin(), {"sh", "-c", "exec \"$@\" <&9 9<&-", "sh"});
    const RunningProgram program(arguments);
    close(kPassedOn);
    EXPECT_TRUE(Eventually([&] { return StatusOf(program.pid())["NoNewPrivs:"] == "1"; }));
    return StatusOf(program.pid());
  }

  uint64_t own_ = 0;
};

TEST_F(DroppedRights, ReadingATimelineTakesAccessToFilesAlone) {
  std::map<std::string, std::string> status = RightsOf(Vcpulse({"replay", "-"}));
  for (const char* set : {"CapEff:", "CapPrm:"}) {
    EXPECT_EQ(std::stoull(status[set], nullptr, 16), own_ & kFiles) << set;
  }
  EXPECT_EQ(std::stoull(status["CapInh:"], nullptr, 16), 0u);
}

TEST_F(DroppedRights, WhatServesMayHaveALowPort) {
  const std::filesystem::path folder = fakes::MakeTemporaryFolder();
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"report", VCPULSE_TEST_DATA "/timeline-v1.vpt", "--serve",
                                 "tcp:127.0.0.1:0"},
        std::vector<std::string>{"collect", "--listen", "tcp:127.0.0.1:0", "--dir", folder}}) {
    std::map<std::string, std::string> status = RightsOf(Vcpulse(arguments));
    EXPECT_EQ(std::stoull(status["CapEff:"], nullptr, 16), own_ & (kFiles | kLowPorts))
        << arguments.front();
  }
  std::filesystem::remove_all(folder);
}

TEST(RightsToKeep, AreNoneOfAnOrdinaryUser) {
  EXPECT_EQ(kvm::RightsToKeep({}, /*is_root=*/false), 0u);
  EXPECT_EQ(kvm::RightsToKeep({.low_ports = true}, /*is_root=*/false), kLowPorts);
  EXPECT_EQ(kvm::RightsToKeep({}, /*is_root=*/true), kFiles);
}

}  // namespace
}  // namespace vcpulse::kvm_tests

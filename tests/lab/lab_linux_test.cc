// A real Linux guest: the bands of each phase against what its first process
// (tools/lab.d/linux-init) did in it. The emulated host has one CPU, so two vCPUs that work wait
// for each other.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "boost/json.hpp"
#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

struct VcpuInPhase {
  double halted = 0;
  double productive = 0;
  double starved = 0;
  double run_delay = 0;
};

struct Phase {
  double length_s = 0;
  std::vector<VcpuInPhase> vcpus;
};

std::map<std::string, Phase> Phases() {
  std::map<std::string, Phase> phases;
  const boost::json::value report = boost::json::parse(ReadText(OutputPath("linux-0", "json.out")));
  for (const auto& phase : report.at("phases").as_array()) {
    Phase& read = phases[std::string(phase.at("name").as_string())];
    read.length_s = phase.at("length_s").to_number<double>();
    for (const auto& vcpu : phase.at("vcpus").as_array()) {
      const auto number = [&vcpu](const char* path) {
        return vcpu.at_pointer(path).to_number<double>();
      };
      read.vcpus.push_back({.halted = number("/share/halted"),
                            .productive = number("/share/productive"),
                            .starved = number("/starved_share"),
                            .run_delay = number("/run_delay_share")});
    }
  }
  return phases;
}

// When its phases began, by the guest's own clock: "phase NAME SECONDS" on its console.
std::vector<std::pair<std::string, double>> PhasesByTheGuest() {
  std::vector<std::pair<std::string, double>> phases;
  std::istringstream console(ReadText(OutputPath("linux-0", "record.out")));
  for (std::string line; std::getline(console, line);) {
    std::istringstream words(line);
    std::string phase, name;
    double begin_s = 0;
    if (words >> phase >> name >> begin_s && phase == "phase") phases.emplace_back(name, begin_s);
  }
  return phases;
}

TEST(Linux, ItsPhasesAreAsLongAsByItsOwnClock) {
  const auto by_the_guest = PhasesByTheGuest();
  ASSERT_EQ(by_the_guest.size(), 6u);
  auto phases = Phases();
  for (size_t i = 0; i + 1 < by_the_guest.size(); ++i) {
    const auto& [name, begin_s] = by_the_guest[i];
    EXPECT_NEAR(phases[name].length_s, by_the_guest[i + 1].second - begin_s, 0.1) << name;
  }
}

TEST(Linux, OneVcpuIsBusyWhereOneProcessIs) {
  auto phases = Phases();
  for (const char* name : {"work", "kernel", "user"}) {
    const Phase& phase = phases[name];
    ASSERT_EQ(phase.vcpus.size(), 2u) << name;
    EXPECT_GT(phase.length_s, 0.5) << name;
    double halted = 0;
    double productive = 0;
    for (const VcpuInPhase& vcpu : phase.vcpus) {
      halted += vcpu.halted;
      productive += vcpu.productive;
    }
    // Both are productive in a tick in which the process moves or its kernel works on the other:
    // seen in up to 0.21 of a phase's ticks.
    EXPECT_GE(productive, 0.95) << name;
    EXPECT_LE(productive, 1.35) << name;
    EXPECT_NEAR(halted, 2 - productive, 0.05) << name;
  }
}

TEST(Linux, BothAreHaltedWhereItSleeps) {
  const Phase idle = Phases()["idle"];
  ASSERT_EQ(idle.vcpus.size(), 2u);
  EXPECT_NEAR(idle.length_s, 2, 0.3);
  for (const VcpuInPhase& vcpu : idle.vcpus) {
    EXPECT_GT(vcpu.halted, 0.8);  // the first ticks and the last are of its neighbours
    EXPECT_LT(vcpu.starved, 0.2);
  }
}

TEST(Linux, BothAreStarvedWhereTwoWorkOnOneCpu) {
  const Phase both = Phases()["both"];
  ASSERT_EQ(both.vcpus.size(), 2u);
  for (const VcpuInPhase& vcpu : both.vcpus) {
    EXPECT_GT(vcpu.productive, 0.8);
    EXPECT_GT(vcpu.starved, 0.8);
    EXPECT_NEAR(vcpu.run_delay, 0.5, 0.15);
  }
}

TEST(Linux, ItsPowerOffIsToldAndNothingIsMissing) {
  const RecordedTimeline recorded = Load(OutputPath("linux-0", "linux.vpt"));
  EXPECT_TRUE(recorded.gaps.empty());
  ASSERT_FALSE(recorded.life_cycle.empty());
  EXPECT_EQ(recorded.life_cycle.back().kind(), v1::LifeCycle::KIND_VM_ENDED);
}

}  // namespace
}  // namespace vcpulse::lab

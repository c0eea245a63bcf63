#include "tests/lab/host_cost.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

// How long measure_cpu1 looks.
constexpr double kInterrupts_s = 3;
constexpr double kPerf_s = 2;

// Function calls: what a read of a running thread's counters sends. /proc/interrupts, twice.
double CallsIn(const std::string& path) {
  std::istringstream text(ReadText(path));
  std::vector<double> calls;
  for (std::string line; std::getline(text, line);) {
    double cpu0 = 0;
    double cpu1 = 0;
    if (!absl::StrContains(line, "Function call")) continue;
    if (std::sscanf(line.c_str(), " %*s %lf %lf", &cpu0, &cpu1) == 2) calls.push_back(cpu1);
  }
  EXPECT_EQ(calls.size(), 2u) << path;
  return calls.size() == 2 ? calls[1] - calls[0] : 0;
}

}  // namespace

HostCost HostCostOf(const std::string& run, const std::string& name) {
  HostCost cost{.ipis_per_s = CallsIn(OutputPath(run, name + ".interrupts")) / kInterrupts_s};
  const std::string perf = ReadText(OutputPath(run, name + ".perf"));
  const auto per_s = [&](const char* event) {
    std::istringstream text(perf);
    for (std::string line; std::getline(text, line);) {
      if (absl::StrContains(line, event)) return std::atof(line.c_str()) / kPerf_s;
    }
    ADD_FAILURE() << name << " has no " << event;
    return 0.0;
  };
  cost.instructions_per_s = per_s("instructions");
  cost.exits_per_s = per_s("kvm_exit");
  cost.switches_per_s = per_s("sched_switch");
  EXPECT_GT(cost.instructions_per_s, 0) << name;
  return cost;
}

}  // namespace vcpulse::lab

// What a VM exit and a switch cost the host by either reader: instructions of its kernel. The
// figures are printed, for docs/cost.md.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/lab/host_cost.h"

namespace vcpulse::lab {
namespace {

constexpr int kTurns = 2;

// Instructions per `events_per_s`, over all turns. Fewer events than `least_per_s` fail the test:
// what happens beside them would count.
double InstructionsPer(double HostCost::* events_per_s, double least_per_s,
                       const std::string& scene, const std::string& mode) {
  double instructions = 0;
  double events = 0;
  for (int turn = 1; turn <= kTurns; ++turn) {
    const HostCost cost = HostCostOf("exits-1", absl::StrCat(turn, "/", mode, "-", scene, "-100"));
    EXPECT_GT(cost.*events_per_s, least_per_s) << scene << " " << mode;
    std::printf("%-5s turn %d: %6.0f %s/s, %5.0f host instructions each\n", mode.c_str(), turn,
                cost.*events_per_s, scene.c_str(), cost.instructions_per_s / cost.*events_per_s);
    instructions += cost.instructions_per_s;
    events += cost.*events_per_s;
  }
  return instructions / events;
}

// A hook on exits would add about a thousand (tried); ticks and switches spread over all exits add
// some ten.
TEST(Exits, ByBpfTheyCostWhatTheyCost) {
  const auto per_exit = [](const std::string& mode) {
    return InstructionsPer(&HostCost::exits_per_s, 5000, "exits", mode);
  };
  const double none = per_exit("none");
  const double bpf = per_exit("bpf");
  per_exit("read");
  EXPECT_LT(bpf - none, 200);
}

// A copy of two counters, times and state each time the thread leaves its CPU, and less when it
// gets one or is woken.
TEST(Exits, ASwitchByBpfCostsAFewThousand) {
  const auto per_switch = [](const std::string& mode) {
    return InstructionsPer(&HostCost::switches_per_s, 2000, "switches", mode);
  };
  const double none = per_switch("none");
  const double bpf = per_switch("bpf");
  per_switch("read");
  EXPECT_GT(bpf - none, 100);  // or nothing was kept
  EXPECT_LT(bpf - none, 4000);
}

}  // namespace
}  // namespace vcpulse::lab

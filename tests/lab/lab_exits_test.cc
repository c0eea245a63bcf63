// What a VM exit costs the host by either reader: instructions of its kernel. The figures are
// printed, for docs/cost.md.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/lab/host_cost.h"

namespace vcpulse::lab {
namespace {

constexpr int kTurns = 2;

// Over all turns.
double InstructionsPerExit(const std::string& mode) {
  double instructions = 0;
  double exits = 0;
  for (int turn = 1; turn <= kTurns; ++turn) {
    const HostCost cost = HostCostOf("exits-1", absl::StrCat(turn, "/", mode, "-exits-100"));
    EXPECT_GT(cost.exits_per_s, 5000) << mode;  // or what happens beside them would count
    std::printf("%-5s turn %d: %6.0f exits/s, %5.0f host instructions per exit\n", mode.c_str(),
                turn, cost.exits_per_s, cost.instructions_per_s / cost.exits_per_s);
    instructions += cost.instructions_per_s;
    exits += cost.exits_per_s;
  }
  return instructions / exits;
}

// A hook on exits would add about a thousand (tried); ticks and switches spread over all exits add
// some ten.
TEST(Exits, ByBpfTheyCostWhatTheyCost) {
  const double none = InstructionsPerExit("none");
  const double bpf = InstructionsPerExit("bpf");
  InstructionsPerExit("read");
  EXPECT_LT(bpf - none, 200);
}

}  // namespace
}  // namespace vcpulse::lab

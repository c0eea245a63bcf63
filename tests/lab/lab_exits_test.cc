// What a VM exit costs the host by either reader: instructions of its kernel. The figures are
// printed, for docs/cost.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/lab/host_cost.h"

namespace vcpulse::lab {
namespace {

constexpr int kTurns = 3;

// The median over the turns.
double InstructionsPerExit(const std::string& mode) {
  std::array<double, kTurns> per_exit{};
  for (int turn = 0; turn < kTurns; ++turn) {
    const HostCost cost = HostCostOf("exits-1", absl::StrCat(turn + 1, "/", mode, "-exits-100"));
    EXPECT_GT(cost.exits_per_s, 5000) << mode;  // or what happens beside them would count
    per_exit[static_cast<size_t>(turn)] = cost.instructions_per_s / cost.exits_per_s;
    std::printf("%-5s turn %d: %6.0f exits/s, %5.0f host instructions per exit\n", mode.c_str(),
                turn + 1, cost.exits_per_s, per_exit[static_cast<size_t>(turn)]);
  }
  std::ranges::sort(per_exit);
  return per_exit[kTurns / 2];
}

// A hook on exits would add some hundred.
TEST(Exits, ByBpfTheyCostWhatTheyCost) {
  const double none = InstructionsPerExit("none");
  const double bpf = InstructionsPerExit("bpf");
  InstructionsPerExit("read");
  EXPECT_LT(bpf, 1.05 * none);
}

}  // namespace
}  // namespace vcpulse::lab

// What a recording with everything on (statistics, hot addresses with code, competitors) costs the
// host beside one of counters alone: interrupts between its CPUs. The figures are printed; the
// limits only catch what is broken.

#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

// Per second, over six seconds.
double IpisOf(const std::string& mode) {
  double ipis = 0;
  std::istringstream text(ReadText(OutputPath("costs-2", mode + ".ipis")));
  EXPECT_TRUE(text >> ipis) << mode;
  std::printf("%-8s %6.1f IPIs/s\n", mode.c_str(), ipis / 6);
  return ipis / 6;
}

TEST(Costs, EverythingOnAddsFewInterrupts) {
  const double none = IpisOf("none");
  const double counters = IpisOf("counters");
  const double all = IpisOf("all");
  EXPECT_GT(counters, none);  // by BPF, whose program is loaded at the start
  EXPECT_LT(all - none, 5 * (counters - none));
}

// So that there was something to pay for.
TEST(Costs, TheWindowsWereThere) {
  const RecordedTimeline recorded = Load(OutputPath("costs-2", "all.vpt"));
  EXPECT_GE(recorded.hot_addresses.size(), 1u);
  EXPECT_GE(recorded.competitors.size(), 1u);
}

}  // namespace
}  // namespace vcpulse::lab

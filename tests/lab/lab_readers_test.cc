// What BPF keeps of vCPUs, on real counters of real guests: its counts are those of read(2), and
// taking them interrupts nobody. The figures are printed, for docs/cost.md.

#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/lab/host_cost.h"
#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

std::string Out(const std::string& file) { return ReadText(OutputPath("readers-1", file)); }

// Scene and tick, ms.
class Readers : public ::testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  std::string At(const std::string& what) const {
    return absl::StrCat(what, "-", std::get<0>(GetParam()), "-", std::get<1>(GetParam()));
  }
  int tick_ms() const { return std::get<1>(GetParam()); }
  int vcpus() const { return std::string(std::get<0>(GetParam())) == "own" ? 2 : 3; }
};

TEST_P(Readers, CountsAreThoseOfRead) {
  std::istringstream text(Out(At("compare") + ".out"));
  std::printf("%s", text.str().c_str());
  int lines = 0;
  int at_rest = 0;
  int running = 0;
  for (std::string line; std::getline(text, line);) {
    int index = 0;
    int rested = 0;
    int equal = 0;
    int ran = 0;
    int between = 0;
    long long age_p50_us = 0;
    long long age_p99_us = 0;
    if (std::sscanf(line.c_str(),
                    "vcpu %d at-rest %d equal %d running %d between %d age-p50-us %lld "
                    "age-p99-us %lld",
                    &index, &rested, &equal, &ran, &between, &age_p50_us, &age_p99_us) != 7) {
      continue;
    }
    ++lines;
    at_rest += rested;
    running += ran;
    EXPECT_EQ(equal, rested) << line;
    EXPECT_EQ(between, ran) << line;
    EXPECT_LT(age_p99_us, 12'000) << line;  // older ones are read by read(2)
    // Ages are looked at after the comparisons: one that seldom runs may be met in either alone.
    if (ran > rested) {
      EXPECT_GT(age_p99_us, 0) << line;
    }
    const bool is_halted = index == vcpus() - 1;
    if (is_halted) {
      EXPECT_EQ(age_p99_us, 0) << line;
      EXPECT_EQ(ran, 0) << line;
    }
  }
  EXPECT_EQ(lines, vcpus());
  // Alone on its CPU vCPU 0 runs all the time, and the halted one has not run since it is looked
  // at.
  if (vcpus() > 2) {
    EXPECT_GT(at_rest, 2000 / tick_ms() / 2);
  }
  EXPECT_GT(running, 2000 / tick_ms() / 8);
}

HostCost CostOf(const std::string& name, int vcpu_ticks_per_s) {
  const HostCost cost = HostCostOf("readers-1", name);
  std::printf(
      "%-16s %5.1f IPIs/s (%.3f per vCPU-tick) %5.2f M host instructions/s %4.0f exits/s %4.0f "
      "switches/s\n",
      name.c_str(), cost.ipis_per_s, cost.ipis_per_s / vcpu_ticks_per_s,
      cost.instructions_per_s * 1e-6, cost.exits_per_s, cost.switches_per_s);
  return cost;
}

TEST_P(Readers, ByBpfNobodyIsInterrupted) {
  const int vcpu_ticks_per_s = vcpus() * 1000 / tick_ms();
  const HostCost none = CostOf(At("none"), vcpu_ticks_per_s);
  const HostCost bpf = CostOf(At("bpf"), vcpu_ticks_per_s);
  const HostCost read = CostOf(At("read"), vcpu_ticks_per_s);
  // Any program has some, a few each second, whatever its ticks.
  constexpr double kOfAnyProgram_per_s = 8;
  EXPECT_LT(bpf.ipis_per_s - none.ipis_per_s, kOfAnyProgram_per_s);
  EXPECT_GT(read.ipis_per_s - none.ipis_per_s, kOfAnyProgram_per_s);
  if (tick_ms() == 10) {
    EXPECT_LT((bpf.ipis_per_s - none.ipis_per_s) / vcpu_ticks_per_s, 0.05);
  }
}

TEST_P(Readers, ARecordingSaysWhichItWas) {
  for (const std::string reader : {"bpf", "read"}) {
    const RecordedTimeline recorded = Load(OutputPath("readers-1", At(reader) + ".vpt"));
    EXPECT_EQ(recorded.session.reader(), reader);
    const RecordedVm& vm = recorded.vms.at(1);
    EXPECT_GE(vm.IntervalsDue(), 2000u / static_cast<unsigned>(tick_ms()));
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, Readers,
                         ::testing::Combine(::testing::Values("own", "shared"),
                                            ::testing::Values(10, 100)));

}  // namespace
}  // namespace vcpulse::lab

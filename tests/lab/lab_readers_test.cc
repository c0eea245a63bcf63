// What BPF keeps of vCPUs, on real counters of real guests: its counts are those of read(2), and
// taking them interrupts nobody. The figures are printed, for docs/cost.md.

#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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
    EXPECT_LT(age_p99_us, 20'000) << line;  // older ones are read by read(2)
  }
  EXPECT_EQ(lines, vcpus());
  EXPECT_GT(at_rest, 2000 / tick_ms() / 2);
  EXPECT_GT(running, 2000 / tick_ms() / 8);
}

struct Cost {
  double ipis = 0;  // per vCPU and tick
  double instructions = 0;
  double exits = 0;
  double switches = 0;
};

Cost CostOf(const std::string& run, int vcpu_ticks) {
  Cost cost;
  std::istringstream(Out(run + ".ipis")) >> cost.ipis;
  cost.ipis /= vcpu_ticks;
  std::istringstream text(Out(run + ".perf"));
  for (std::string line; std::getline(text, line);) {
    const double value = std::atof(line.c_str());
    if (absl::StrContains(line, "instructions")) cost.instructions = value;
    if (absl::StrContains(line, "kvm_exit")) cost.exits = value;
    if (absl::StrContains(line, "sched_switch")) cost.switches = value;
  }
  EXPECT_GT(cost.instructions, 0) << run;
  std::printf("%-16s %6.3f IPIs/vCPU-tick %6.2f M host instructions %6.0f exits %6.0f switches\n",
              run.c_str(), cost.ipis, cost.instructions * 1e-6, cost.exits, cost.switches);
  return cost;
}

TEST_P(Readers, ByBpfNobodyIsInterrupted) {
  const int vcpu_ticks = vcpus() * 3000 / tick_ms();
  const Cost none = CostOf(At("none"), vcpu_ticks);
  const Cost bpf = CostOf(At("bpf"), vcpu_ticks);
  const Cost read = CostOf(At("read"), vcpu_ticks);
  EXPECT_LT(bpf.ipis - none.ipis, 0.05);
  EXPECT_GT(read.ipis - none.ipis, 0.2);  // one vCPU of two or three runs
}

TEST_P(Readers, ARecordingSaysWhichItWas) {
  for (const std::string reader : {"bpf", "read"}) {
    const RecordedTimeline recorded = Load(OutputPath("readers-1", At(reader) + ".vpt"));
    EXPECT_EQ(recorded.session.reader(), reader);
    EXPECT_TRUE(recorded.gaps.empty());
    const RecordedVm& vm = recorded.vms.at(1);
    EXPECT_GE(vm.IntervalsDue(), 2000u / static_cast<unsigned>(tick_ms()));
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, Readers,
                         ::testing::Combine(::testing::Values("own", "shared"),
                                            ::testing::Values(10, 100)));

}  // namespace
}  // namespace vcpulse::lab

#include "tests/accuracy/loops.h"

#include <algorithm>
#include <cstdlib>

namespace vcpulse::accuracy {
namespace {

// Relative, from tick to tick: a loop of a few instructions, and software.
constexpr double kMicro = 0.004;
constexpr double kSoftware = 0.03;
// Of the whole series: machines of one model differ little, programs more.
constexpr double kSeries = 0.01;
// Of counts of misses, from tick to tick.
constexpr double kMisses = 0.05;

// Cycles of a loop around one PAUSE beside it: a load, a compare and a branch.
constexpr double kAroundPause = 3;

// A CPU six wide is what the published IPCs of loops without PAUSE were measured on.
constexpr double kWidthMeasured = 6;

// One tick of the guest's timer: exits, the handler, the scheduler.
constexpr double kTickCycles = 12'000;
constexpr double kTickIpc = 0.75;
constexpr double kTickBranchShare = 0.20;
constexpr double kTickBranchMisses = 50;
constexpr CacheMissRates kTickCacheMisses = {.last_level = 5, .l2 = 25, .l1d = 100};

Loop PauseSpin(const CpuModel& cpu, double instructions) {
  return {.name = "pause-spin-" + std::to_string(static_cast<int>(instructions)),
          .label = Label::kSpinning,
          .ipc = instructions / (cpu.pause_cycles + kAroundPause),
          .ipc_deviation = kMicro,
          .branch_share = 1 / instructions,
          .branch_misses = 0.0005,
          .cache_misses = {.last_level = 0.0002, .l2 = 0.001, .l1d = 0.005},
          .pauses_per_instruction = 1 / instructions};
}

// Of a loop that goes through so much memory over and over. It misses each line where that is more
// than the cache holds, and next to none where it fits; where it just fits, timer ticks and the
// loop's own stack drive out one line of 25.
double SweepMisses(const CpuModel& cpu, double kib, double lines_per_kilo) {
  if (kib > cpu.l1d_kib) return lines_per_kilo;
  return kib == cpu.l1d_kib ? lines_per_kilo / 25 : lines_per_kilo / 1000;
}

Loop Spin(std::string name, double ipc, double branch_share) {
  return {.name = std::move(name),
          .label = Label::kSpinning,
          .ipc = ipc,
          .ipc_deviation = kMicro,
          .branch_share = branch_share,
          .branch_misses = 0.0005,
          .cache_misses = {.last_level = 0.0002, .l2 = 0.001, .l1d = 0.005}};
}

Counts Ticks(double cycles, double ipc, double ticks, const CpuModel& cpu, RandomSource& random) {
  const double instructions = cycles * ipc;
  return {.cycles = cycles,
          .instructions = instructions,
          .branches = instructions * kTickBranchShare,
          .branch_misses = ticks * kTickBranchMisses * random.Around1(0.1),
          .cache_misses = ticks * kTickCacheMisses.Of(cpu.cache_misses) * random.Around1(0.1),
          .l1d_misses = ticks * kTickCacheMisses.l1d * random.Around1(0.1),
          .ref_cycles = cycles / cpu.core_hz * cpu.tsc_hz.value_or(0)};
}

}  // namespace

std::string_view ToString(Label label) {
  switch (label) {
    case Label::kHalted:
      return "halted";
    case Label::kSpinning:
      return "spinning";
    case Label::kProductive:
      return "productive";
    case Label::kMixed:
      return "mixed";
  }
  return "-";
}

double CacheMissRates::Of(CacheMisses which) const {
  if (which == CacheMisses::kLastLevel) return last_level;
  return which == CacheMisses::kL2 ? l2 : l1d;
}

Counts& Counts::operator+=(const Counts& other) {
  cycles += other.cycles;
  instructions += other.instructions;
  branches += other.branches;
  branch_misses += other.branch_misses;
  cache_misses += other.cache_misses;
  l1d_misses += other.l1d_misses;
  ref_cycles += other.ref_cycles;
  pauses += other.pauses;
  return *this;
}

Counts& Counts::operator*=(double factor) {
  for (double* count : {&cycles, &instructions, &branches, &branch_misses, &cache_misses,
                        &l1d_misses, &ref_cycles, &pauses}) {
    *count *= factor;
  }
  return *this;
}

RunningLoop::RunningLoop(const Loop& loop, const CpuModel& cpu, RandomSource& random)
    : loop_(loop), cpu_(cpu), random_(random) {
  ipc_ = loop.ipc_to > 0 ? random.Uniform(loop.ipc_from, loop.ipc_to)
                         : loop.ipc * random.Around1(kSeries);
}

double RunningLoop::NextIpc() {
  if (loop_.ipc_to == 0) return ipc_ * random_.Around1(loop_.ipc_deviation);
  const double step = (loop_.ipc_to - loop_.ipc_from) / 10;
  ipc_ = std::clamp(ipc_ + random_.Uniform(-step, step), loop_.ipc_from, loop_.ipc_to);
  return ipc_;
}

Counts RunningLoop::Run(double seconds) {
  // Turbo wanders a little.
  const double cycles = seconds * cpu_.core_hz * random_.Uniform(0.985, 1.0);
  const double instructions = cycles * NextIpc();
  const double kilo = instructions / 1000;
  return {
      .cycles = cycles,
      .instructions = instructions,
      .branches = instructions * loop_.branch_share * random_.Around1(kMicro),
      .branch_misses = kilo * loop_.branch_misses * random_.Around1(kMisses),
      .cache_misses = kilo * loop_.cache_misses.Of(cpu_.cache_misses) * random_.Around1(kMisses),
      .l1d_misses = kilo * loop_.cache_misses.l1d * random_.Around1(kMisses),
      .ref_cycles = seconds * cpu_.tsc_hz.value_or(0),
      .pauses = instructions * loop_.pauses_per_instruction};
}

Counts TimerTicks(double ticks, const CpuModel& cpu, RandomSource& random) {
  const double cycles = ticks * kTickCycles * random.Around1(0.1);
  return Ticks(cycles, kTickIpc * random.Around1(0.05), ticks, cpu, random);
}

Counts TimerTicksOfIdleGuest(double ticks, const CpuModel& cpu, RandomSource& random) {
  const double cycles = ticks * kTickCycles * random.Uniform(0.5, 2.0);
  return Ticks(cycles, random.Uniform(0.1, 1.2), ticks, cpu, random);
}

std::vector<Loop> SpinsOf(const CpuModel& cpu) {
  const double narrower = std::min(1.0, cpu.width / kWidthMeasured);
  std::vector<Loop> loops;
  if (cpu.IsArm()) {
    loops = {Spin("yield-spin-2", 2.2, 0.25), Spin("yield-spin-4", 3.8, 0.25),
             Spin("isb-spin", 0.11, 0.25)};
  } else {
    loops = {PauseSpin(cpu, 4), PauseSpin(cpu, 5)};
  }
  loops.push_back(Spin("bare-spin", 4.6 * narrower, 0.33));
  loops.push_back(Spin("empty-poll", 6.7 * narrower, 0.20));
  Loop blas = Spin("blas-spin", 0.87, 0.28);
  blas.ipc_deviation = kSoftware;
  blas.branch_misses = 0.03;
  blas.cache_misses = {.last_level = 0.02, .l2 = 0.03, .l1d = 0.08};
  loops.push_back(blas);
  return loops;
}

std::vector<Loop> ProductiveLoopsOf(const CpuModel& cpu) {
  return {
      {.name = "divide",
       .ipc = 0.23,
       .ipc_deviation = kMicro,
       .branch_share = 0.25,
       .branch_misses = 0.001,
       .cache_misses = {.last_level = 0.002, .l2 = 0.005, .l1d = 0.01}},
      {.name = "pointer-chase",
       .ipc = 0.004,
       .ipc_deviation = kMicro,
       .branch_share = 0.06,
       .branch_misses = 0.05,
       .cache_misses = {.last_level = 920, .l2 = 930, .l1d = 940}},
      {.name = "compile",
       .ipc = 0.64,
       .ipc_deviation = kSoftware,
       .branch_share = 0.21,
       .branch_misses = 9,
       .cache_misses = {.last_level = 1, .l2 = 9, .l1d = 25}},
      {.name = "mcf",
       .branch_share = 0.22,
       .branch_misses = 11,
       .cache_misses = {.last_level = 6, .l2 = 25, .l1d = 60},
       .ipc_from = 0.5,
       .ipc_to = 1.6},
      {.name = "dense",
       .ipc = 2.5,
       .ipc_deviation = kSoftware,
       .branch_share = 0.03,
       .branch_misses = 0.03,
       .cache_misses = {.last_level = 0.1, .l2 = 0.6, .l1d = 8}},
      {.name = "stream-copy",
       .ipc = 0.35,
       .ipc_deviation = kSoftware,
       .branch_share = 0.07,
       .branch_misses = 0.03,
       .cache_misses = {.last_level = 22, .l2 = 35, .l1d = 60}},
      {.name = "interpreter",
       .ipc = 2.2,
       .ipc_deviation = kSoftware,
       .branch_share = 0.21,
       .branch_misses = 2.5,
       .cache_misses = {.last_level = 0.1, .l2 = 2, .l1d = 12}},
      {.name = "server",
       .ipc = 0.8,
       .ipc_deviation = 2 * kSoftware,
       .branch_share = 0.20,
       .branch_misses = 6,
       .cache_misses = {.last_level = 1.5, .l2 = 14, .l1d = 32},
       .busy_from = 0.3,
       .busy_to = 0.8},
      {.name = "blocked-matrix",
       .ipc = 1.1,
       .ipc_deviation = kSoftware,
       .branch_share = 0.14,
       .branch_misses = 0.07,
       .cache_misses = {.last_level = 0.045, .l2 = 0.3, .l1d = 3.5}},
      {.name = "cached-stencil",
       .ipc = 1.6,
       .ipc_deviation = kSoftware,
       .branch_share = 0.12,
       .branch_misses = 0.02,
       .cache_misses = {.last_level = 0.01, .l2 = 0.05, .l1d = 14}},
      {.name = "hash-64k",
       .ipc = 1.8,
       .ipc_deviation = kMicro,
       .branch_share = 0.11,
       .branch_misses = 0.002,
       .cache_misses = {.last_level = 0.001,
                        .l2 = 0.01,
                        .l1d = SweepMisses(cpu, 64, /*lines_per_kilo=*/25)}},
  };
}

std::vector<Loop> HeldApartLoopsOf(const CpuModel& cpu) {
  return {
      {.name = "factorise-block",
       .ipc = 0.9,
       .ipc_deviation = kSoftware,
       .branch_share = 0.11,
       .branch_misses = 0.06,
       .cache_misses = {.last_level = 0.03, .l2 = 0.5, .l1d = 6}},
      {.name = "fourier-32k",
       .ipc = 1.9,
       .ipc_deviation = kSoftware,
       .branch_share = 0.10,
       .branch_misses = 0.04,
       .cache_misses = {.last_level = 0.002,
                        .l2 = 0.02,
                        .l1d = SweepMisses(cpu, 48, /*lines_per_kilo=*/9)}},
      {.name = "scan-text",
       .ipc = 3.1,
       .ipc_deviation = kMicro,
       .branch_share = 0.22,
       .branch_misses = 0.01,
       .cache_misses = {.last_level = 0.02, .l2 = 0.6, .l1d = 2.6}},
      {.name = "sum-of-bytes",
       .ipc = 0.7,
       .ipc_deviation = kMicro,
       .branch_share = 0.25,
       .branch_misses = 0.001,
       .cache_misses = {.last_level = 0.04, .l2 = 0.5, .l1d = 3.9}},
      {.name = "poll-of-four-words",
       .label = Label::kSpinning,
       .ipc = 2.6,
       .ipc_deviation = kMicro,
       .branch_share = 0.31,
       .branch_misses = 0.001,
       .cache_misses = {.last_level = 0.0005, .l2 = 0.002, .l1d = 0.02}},
  };
}

std::vector<Loop> BlindSpotsOf(const CpuModel& cpu) {
  Loop slow = Spin("tight-work-1.5", 1.5, 0.25);
  Loop fast = Spin("tight-work-3", 3, 0.25);
  slow.label = fast.label = Label::kProductive;
  Loop contended = Spin("contended-cas", 0.05, 0.33);
  contended.branch_misses = 2;
  contended.cache_misses = {.last_level = 30, .l2 = 160, .l1d = 160};
  // Waits without PAUSE on a line that stays in the own cache: an exchange takes about 20 cycles, a
  // read of the TSC about 25.
  const Loop exchange = Spin("test-and-set-spin", 0.2, 0.25);
  const Loop until_tsc = Spin("rdtsc-spin", 0.2, 0.2);
  std::vector<Loop> loops = {slow, fast, contended, exchange, until_tsc};
  if (cpu.name == "intel-haswell-broadwell") {
    Loop divide = Named(ProductiveLoopsOf(cpu), "divide");
    divide.name = "divide-0.30";
    divide.ipc = 0.30;
    loops.push_back(divide);
  }
  return loops;
}

const Loop& Named(const std::vector<Loop>& loops, std::string_view name) {
  const auto found = std::ranges::find(loops, name, &Loop::name);
  if (found == loops.end()) std::abort();
  return *found;
}

}  // namespace vcpulse::accuracy

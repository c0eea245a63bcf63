#pragma once

// What a vCPU may run, and what a CPU would count of it.

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/accuracy/cpu_models.h"

namespace vcpulse::accuracy {

// The same numbers on every machine: the engine is the standard's, the distributions are ours, as
// those of the standard library differ between libraries. No function of <cmath> is used.
class RandomSource {
 public:
  // A stream of its own for each name (FNV-1a of it is the seed).
  explicit RandomSource(std::string_view name) : engine_(Seed(name)) {}

  double Uniform(double from, double to) {
    return from + (to - from) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }

  // Around 1 with this standard deviation; a sum of twelve uniforms is normal enough, and ends at
  // six deviations. At least 0.
  double Around1(double deviation) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += Uniform(0, 1);
    const double value = 1 + sum * deviation;
    return value > 0 ? value : 0;
  }

 private:
  static uint64_t Seed(std::string_view name) {
    uint64_t hash = 14695981039346656037u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return hash;
  }

  std::mt19937_64 engine_;
};

enum class Label : uint8_t { kHalted, kSpinning, kProductive, kMixed };
std::string_view ToString(Label label);

// Misses of the caches that `cache-misses` may mean, per kilo-instruction.
struct CacheMissRates {
  double last_level = 0;
  double l2 = 0;
  double l1d = 0;

  double Of(CacheMisses which) const;
};

struct Loop {
  std::string name;
  Label label = Label::kProductive;
  double ipc = 0;
  double ipc_deviation = 0;  // from tick to tick, relative
  double branch_share = 0;   // branches per instruction
  double branch_misses = 0;  // per kilo-instruction
  CacheMissRates cache_misses;
  double pauses_per_instruction = 0;
  // Where the IPC wanders from tick to tick instead.
  double ipc_from = 0;
  double ipc_to = 0;
  // Share of the time in which there is something to do.
  double busy_from = 1;
  double busy_to = 1;
};

// What was counted, before rounding.
struct Counts {
  double cycles = 0;
  double instructions = 0;
  double branches = 0;
  double branch_misses = 0;
  double cache_misses = 0;
  double l1d_misses = 0;
  double ref_cycles = 0;
  double pauses = 0;

  Counts& operator+=(const Counts& other);
  Counts& operator*=(double factor);
};

// One loop in one series: its own IPC lies a little off the model's for the whole series.
class RunningLoop {
 public:
  RunningLoop(const Loop& loop, const CpuModel& cpu, RandomSource& random);

  // Guest time of this length.
  Counts Run(double seconds);

 private:
  double NextIpc();

  const Loop& loop_;
  const CpuModel& cpu_;
  RandomSource& random_;
  double ipc_ = 0;
};

// So many ticks of the guest's timer within one sample, each the handler and what hangs on it.
Counts TimerTicks(double ticks, const CpuModel& cpu, RandomSource& random);
// The same in a guest that has nothing else to do: each wakes it up from a halt, so that its IPC is
// anything.
Counts TimerTicksOfIdleGuest(double ticks, const CpuModel& cpu, RandomSource& random);

std::vector<Loop> SpinsOf(const CpuModel& cpu);
std::vector<Loop> ProductiveLoopsOf(const CpuModel& cpu);
// Of which no number was looked at when thresholds were chosen.
std::vector<Loop> HeldApartLoopsOf(const CpuModel& cpu);
std::vector<Loop> BlindSpotsOf(const CpuModel& cpu);

// The one of `loops` with this name; it must be there.
const Loop& Named(const std::vector<Loop>& loops, std::string_view name);

}  // namespace vcpulse::accuracy

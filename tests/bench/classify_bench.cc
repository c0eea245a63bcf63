// What a verdict costs per vCPU and sample, in nanoseconds, the evidence classifier beside
// ipc-bands on the same samples; and that neither allocates.

#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <new>
#include <vector>

#include "monitor/core/epoch_classifier.h"

namespace {
std::atomic<uint64_t> allocations = 0;  // of this program
}  // namespace

// Not inlined: g++ takes an inlined pair for a mismatch of new and free.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace vcpulse::bench {
namespace {

constexpr size_t kVcpus = 64;
constexpr int64_t kInterval = 100'000'000;
constexpr double kHz = 3e9;

constexpr core::EventSlots kSlots{.cycles = 0,
                                  .instructions = 1,
                                  .branches = 2,
                                  .branch_misses = 3,
                                  .cache_misses = 4,
                                  .ref_cycles = 5,
                                  .pause = 6,
                                  .pause_in_cycles = true};

// What a vCPU does in one tick.
struct Load {
  double residency, ipc, branch_share, branch_misses, cache_misses, pause;
};

// One of each kind, so that every rule is gone through by some vCPU.
constexpr Load kLoads[] = {
    {0.01, 0.5, 0.2, 3, 3, 0},          // halted with timer ticks
    {1, 0.1, 0.3, 0.01, 0.01, 0.9},     // spins with PAUSE
    {1, 4.6, 0.3, 0.01, 0.01, 0},       // spins without
    {1, 0.004, 0.3, 0.01, 3, 0},        // chases pointers
    {0.5, 0.64, 0.2, 4, 0.3, 0},        // compiles, and shares its CPU
    {1, 2.5, 0.03, 0.01, 0.01, 0},      // computes
    {1, 0.8, 0.05, 0.05, 0.3, 0},       // nothing speaks
    {1, 0.9, 0.3, 0.01, 0.01, 0.0001},  // a tight loop
};

void Advance(core::Sample& sample) {
  ++sample.tick;
  for (size_t v = 0; v < sample.vcpus.size(); ++v) {
    core::VcpuSample& vcpu = sample.vcpus[v];
    const Load& load = kLoads[v % std::size(kLoads)];
    const double on_cpu = load.residency * kInterval;
    const double cycles = on_cpu * 1e-9 * kHz;
    vcpu.read_begin_ns += kInterval;
    vcpu.read_end_ns += kInterval;
    vcpu.time_enabled_ns += static_cast<uint64_t>(on_cpu);
    vcpu.time_running_ns += static_cast<uint64_t>(on_cpu);
    const double counts[] = {cycles,
                             load.ipc * cycles,
                             load.ipc * load.branch_share * cycles,
                             load.branch_misses * cycles / 1000,
                             load.cache_misses * cycles / 1000,
                             cycles,
                             load.pause * cycles};
    for (size_t i = 0; i < std::size(counts); ++i)
      vcpu.counts[i] += static_cast<uint64_t>(counts[i]);
    vcpu.has_scheduler_times = true;
    vcpu.run_ns += static_cast<uint64_t>(on_cpu);
  }
}

void Classify(benchmark::State& state, core::Classifier classifier) {
  core::EpochClassifier epoch({.vcpus = kVcpus, .slots = kSlots}, classifier, core::Profile{},
                              kInterval);
  core::ResidencyEstimator residency({{.tsc_hz = kHz, .max_hz = kHz}});
  std::vector<core::Verdict> verdicts(kVcpus);
  core::Sample sample;
  sample.vcpus.resize(kVcpus);
  epoch.Classify(sample, residency, verdicts);
  uint64_t allocated = 0;
  std::chrono::duration<double, std::nano> total{};
  for (auto _ : state) {
    Advance(sample);
    const uint64_t before = allocations;
    const auto begin = std::chrono::steady_clock::now();
    epoch.Classify(sample, residency, verdicts);
    benchmark::DoNotOptimize(verdicts.data());
    const auto took = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(std::chrono::duration<double>(took).count());
    total += took;
    allocated += allocations - before;
  }
  const auto judged = static_cast<double>(state.iterations()) * kVcpus;
  state.counters["ns/vCPU-sample"] = total.count() / judged;
  state.counters["allocations"] = static_cast<double>(allocated);
  if (allocated != 0) state.SkipWithError("the classifier allocates");
}

BENCHMARK_CAPTURE(Classify, evidence, core::Classifier::kEvidence)->UseManualTime();
BENCHMARK_CAPTURE(Classify, ipc_bands, core::Classifier::kIpcBands)->UseManualTime();

}  // namespace
}  // namespace vcpulse::bench

BENCHMARK_MAIN();

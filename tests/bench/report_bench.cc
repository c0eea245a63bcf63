// What a report costs per vCPU-sample beside reading the same chunks and nothing more: 64 vCPUs as
// in codec_bench, 1,000 ticks per chunk.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "monitor/report/summary.h"
#include "monitor/timeline/reader.h"
#include "monitor/timeline/writer.h"
#include "tests/fakes/synthetic_vm.h"

namespace vcpulse {
namespace {

constexpr size_t kVcpus = 64;
constexpr size_t kTicks = 4000;
constexpr size_t kTicksPerChunk = 1000;

const std::vector<uint8_t>& Chunks() {
  static const std::vector<uint8_t> chunks = [] {
    std::vector<fakes::Load> loads;
    for (size_t v = 0; v < kVcpus; ++v) {
      loads.push_back(v % 4 < 2    ? fakes::Load::kBusy
                      : v % 4 == 2 ? fakes::Load::kIdle
                                   : fakes::Load::kShared);
    }
    fakes::SyntheticVm vm(loads, 100'000'000, 1);
    std::vector<uint8_t> made;
    const auto writer = timeline::NewChunkWriter({}, [&](std::span<const uint8_t> chunk) {
      made.insert(made.end(), chunk.begin(), chunk.end());
      return absl::OkStatus();
    });
    v1::TimelineRecord record;
    record.mutable_session()->set_max_hz(3e9);
    writer->Add(record, 1);
    *record.mutable_vcpu_set() = vm.VcpuSet(1, 1);
    writer->Add(record, 1);
    const std::vector<core::Verdict> verdicts = vm.Verdicts();
    for (size_t tick = 1; tick <= kTicks; ++tick) {
      writer->AddTick(1, 1, vm.Next(), verdicts);
      if (tick % kTicksPerChunk == 0) benchmark::DoNotOptimize(writer->Flush({}).ok());
    }
    return made;
  }();
  return chunks;
}

void Rate(benchmark::State& state) {
  const double samples = static_cast<double>(state.iterations()) * kVcpus * kTicks;
  state.counters["vcpu-samples/s"] = benchmark::Counter(samples, benchmark::Counter::kIsRate);
  state.counters["time/vcpu-sample"] =
      benchmark::Counter(samples, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void Read(benchmark::State& state) {
  const std::vector<uint8_t>& chunks = Chunks();
  for (auto _ : state) {
    uint64_t records = 0;
    const auto read = timeline::ReadTimelineBytes(chunks, [&records](const timeline::Entry&) {
      ++records;
      return absl::OkStatus();
    });
    if (!read.ok() || records < kTicks) state.SkipWithError("the chunks do not read");
  }
  Rate(state);
}
BENCHMARK(Read)->Unit(benchmark::kMillisecond);

void Report(benchmark::State& state) {
  const std::vector<uint8_t>& chunks = Chunks();
  for (auto _ : state) {
    report::Summary summary;
    const auto read = timeline::ReadTimelineBytes(
        chunks, [&summary](const timeline::Entry& entry) { return summary.Add(entry); });
    if (!read.ok() || summary.own_cost().ticks != kTicks) {
      state.SkipWithError("the chunks do not read");
    }
  }
  Rate(state);
}
BENCHMARK(Report)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vcpulse

BENCHMARK_MAIN();

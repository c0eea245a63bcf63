// What a vCPU-sample costs in the timeline: bytes on disk and time to write, as chunks of 10 ticks
// (100 ms ticks, flushed each second) and of 1,000, beside plain delta rows (delimited
// TimelineRecord messages) of the same ticks with the same compression. 64 vCPUs: half of them
// busy, a quarter idle, a quarter sharing a CPU; four events, scheduler times.

#include <benchmark/benchmark.h>
#include <zstd.h>

#include <memory>
#include <vector>

#include "monitor/timeline/reader.h"
#include "monitor/timeline/writer.h"
#include "tests/fakes/synthetic_vm.h"

namespace vcpulse::timeline {
namespace {

constexpr size_t kVcpus = 64;
constexpr int64_t kInterval_ns = 100'000'000;
constexpr size_t kTicks = 4000;

// Made before the clock runs: the noise costs more than the codec.
struct Input {
  v1::VcpuSet set;
  std::vector<core::Sample> samples{};
  std::vector<core::Verdict> verdicts;
};

const Input& Ticks() {
  static const Input input = [] {
    std::vector<fakes::Load> loads;
    for (size_t v = 0; v < kVcpus; ++v) {
      loads.push_back(v % 4 < 2    ? fakes::Load::kBusy
                      : v % 4 == 2 ? fakes::Load::kIdle
                                   : fakes::Load::kShared);
    }
    fakes::SyntheticVm vm(loads, kInterval_ns, 1);
    Input made{.set = vm.VcpuSet(1, 1), .verdicts = vm.Verdicts()};
    for (size_t t = 0; t < kTicks; ++t) made.samples.push_back(vm.Next());
    return made;
  }();
  return input;
}

void WriteAll(RecordWriter& writer, size_t ticks_per_flush) {
  const Input& input = Ticks();
  v1::TimelineRecord record;
  record.mutable_session()->set_host_name("bench");
  writer.Add(record, input.samples[0].wake_ns);
  *record.mutable_vcpu_set() = input.set;
  writer.Add(record, input.samples[0].wake_ns);
  const v1::ClockSnapshot clock;
  size_t pending = 0;
  for (const core::Sample& sample : input.samples) {
    writer.AddTick(1, 1, sample, input.verdicts);
    if (++pending < ticks_per_flush) continue;
    pending = 0;
    benchmark::DoNotOptimize(writer.Flush(clock).ok());
  }
  benchmark::DoNotOptimize(writer.Flush(clock).ok());
}

void Report(benchmark::State& state, size_t bytes) {
  const double samples = static_cast<double>(state.iterations()) * kVcpus * kTicks;
  state.counters["bytes/vcpu-sample"] = static_cast<double>(bytes) / samples;
  state.counters["time/vcpu-sample"] =
      benchmark::Counter(samples, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void WriteChunks(benchmark::State& state) {
  Ticks();
  size_t bytes = 0;
  for (auto _ : state) {
    const auto writer = NewChunkWriter({}, [&](std::span<const uint8_t> chunk) {
      bytes += chunk.size();
      return absl::OkStatus();
    });
    WriteAll(*writer, static_cast<size_t>(state.range(0)));
  }
  Report(state, bytes);
}
BENCHMARK(WriteChunks)->Arg(10)->Arg(1000)->Unit(benchmark::kMillisecond);

void WritePlainRows(benchmark::State& state) {
  Ticks();
  size_t bytes = 0;
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(),
                                                                   ZSTD_freeCCtx);
  std::vector<char> out;
  for (auto _ : state) {
    const auto writer = NewDelimitedWriter([&](std::span<const uint8_t> rows) {
      out.resize(ZSTD_compressBound(rows.size()));
      bytes +=
          ZSTD_compressCCtx(context.get(), out.data(), out.size(), rows.data(), rows.size(), 3);
      return absl::OkStatus();
    });
    WriteAll(*writer, static_cast<size_t>(state.range(0)));
  }
  Report(state, bytes);
}
BENCHMARK(WritePlainRows)->Arg(10)->Arg(1000)->Unit(benchmark::kMillisecond);

void ReadChunks(benchmark::State& state) {
  std::vector<uint8_t> file;
  const auto writer = NewChunkWriter({}, [&](std::span<const uint8_t> chunk) {
    file.insert(file.end(), chunk.begin(), chunk.end());
    return absl::OkStatus();
  });
  WriteAll(*writer, static_cast<size_t>(state.range(0)));
  uint64_t records = 0;
  for (auto _ : state) {
    const auto report = ReadTimelineBytes(file, [&](const Entry&) {
      ++records;
      return absl::OkStatus();
    });
    if (!report.ok() || report->records != kTicks + 2)
      state.SkipWithError("the file does not read");
  }
  Report(state, file.size() * static_cast<size_t>(state.iterations()));
}
BENCHMARK(ReadChunks)->Arg(10)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vcpulse::timeline

BENCHMARK_MAIN();

// What exports and a replay that waits for nothing cost per vCPU-sample, beside reading the same
// chunks and nothing more: 64 vCPUs as in codec_bench, their bands changing, 100 ticks per chunk.
// The output is counted and dropped.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "monitor/export/csv.h"
#include "monitor/export/jsonl.h"
#include "monitor/export/parquet.h"
#include "monitor/export/perfetto.h"
#include "monitor/follow/replay_view.h"
#include "monitor/replay/record_copy.h"
#include "monitor/timeline/reader.h"
#include "monitor/timeline/writer.h"
#include "tests/bench/gathered_rows.h"
#include "tests/fakes/synthetic_vm.h"

namespace vcpulse {
namespace {

constexpr size_t kVcpus = 64;
constexpr size_t kTicks = 4000;
constexpr size_t kTicksPerChunk = 100;

v1::ClockSnapshot Clock() {
  v1::ClockSnapshot clock;
  clock.set_mono_ns(86'400'000'000'000);
  clock.set_boottime_ns(90'000'000'000'000);
  clock.set_realtime_ns(1'767'225'600'000'000'000);
  return clock;
}

const std::vector<uint8_t>& Chunks() {
  static const std::vector<uint8_t> chunks = [] {
    std::vector<fakes::Load> loads;
    for (size_t v = 0; v < kVcpus; ++v) {
      loads.push_back(v % 4 < 2    ? fakes::Load::kBusy
                      : v % 4 == 2 ? fakes::Load::kIdle
                                   : fakes::Load::kShared);
    }
    fakes::SyntheticVm vm(loads, 10'000'000, 1);
    std::vector<uint8_t> made;
    const auto writer = timeline::NewChunkWriter({}, [&](std::span<const uint8_t> chunk) {
      made.insert(made.end(), chunk.begin(), chunk.end());
      return absl::OkStatus();
    });
    v1::TimelineRecord record;
    record.mutable_session()->set_max_hz(3e9);
    record.mutable_session()->set_residency_method(v1::RESIDENCY_METHOD_MAX_FREQUENCY);
    writer->Add(record, 1);
    *record.mutable_vcpu_set() = vm.VcpuSet(1, 1);
    writer->Add(record, 1);
    const std::vector<core::Verdict> usual = vm.Verdicts();
    std::vector<core::Verdict> verdicts = usual;
    for (size_t tick = 1; tick <= kTicks; ++tick) {
      for (size_t v = 0; v < kVcpus; ++v) verdicts[v] = usual[(v + (tick + v) / 20) % kVcpus];
      writer->AddTick(1, 1, vm.Next(), verdicts);
      if (tick % kTicksPerChunk == 0) benchmark::DoNotOptimize(writer->Flush(Clock()).ok());
    }
    return made;
  }();
  return chunks;
}

// Reads all chunks once per iteration; `make` gives what takes the entries.
template <typename Make>
void Run(benchmark::State& state, const Make& make) {
  const std::vector<uint8_t>& chunks = Chunks();
  uint64_t bytes = 0;
  for (auto _ : state) {
    auto take = make(bytes);
    const auto read = timeline::ReadTimelineBytes(chunks, take);
    if (!read.ok()) state.SkipWithError("the chunks do not read");
  }
  const double samples = static_cast<double>(state.iterations()) * kVcpus * kTicks;
  state.counters["vcpu-samples/s"] = benchmark::Counter(samples, benchmark::Counter::kIsRate);
  state.counters["bytes/vcpu-sample"] = static_cast<double>(bytes) / samples;
}

void Read(benchmark::State& state) {
  Run(state, [](uint64_t&) { return [](const timeline::Entry&) { return absl::OkStatus(); }; });
}
BENCHMARK(Read)->Unit(benchmark::kMillisecond);

template <typename Format>
void Export(benchmark::State& state) {
  Run(state, [](uint64_t& bytes) {
    auto format = std::make_shared<Format>([&bytes](std::string_view text) {
      bytes += text.size();
      return absl::OkStatus();
    });
    return [format](const timeline::Entry& entry) { return format->Add(entry); };
  });
}
BENCHMARK(Export<exporting::JsonlExport>)->Unit(benchmark::kMillisecond);
BENCHMARK(Export<exporting::CsvExport>)->Unit(benchmark::kMillisecond);
BENCHMARK(Export<exporting::PerfettoExport>)->Unit(benchmark::kMillisecond);

// With its footer, as its bytes come by row groups.
void ExportParquet(benchmark::State& state) {
  uint64_t bytes = 0;
  for (auto _ : state) {
    exporting::ParquetExport format(
        [&bytes](std::string_view text) {
          bytes += text.size();
          return absl::OkStatus();
        },
        "0");
    const auto read = timeline::ReadTimelineBytes(
        Chunks(), [&format](const timeline::Entry& entry) { return format.Add(entry); });
    if (!read.ok() || !format.Finish().ok()) state.SkipWithError("the chunks do not read");
  }
  const double samples = static_cast<double>(state.iterations()) * kVcpus * kTicks;
  state.counters["vcpu-samples/s"] = benchmark::Counter(samples, benchmark::Counter::kIsRate);
  state.counters["bytes/vcpu-sample"] = static_cast<double>(bytes) / samples;
}
BENCHMARK(ExportParquet)->Unit(benchmark::kMillisecond);

// The writer alone: the rows of the export are in memory.
void WriteParquet(benchmark::State& state) {
  const auto rows = bench::GatherRows(
      [](const auto& take) { return timeline::ReadTimelineBytes(Chunks(), take).status(); });
  uint64_t bytes = 0;
  for (auto _ : state) {
    const auto writer = parquet::Writer::Create(rows->schema(), [&bytes](std::string_view more) {
      bytes += more.size();
      return absl::OkStatus();
    });
    if (!rows->WriteTo(**writer).ok()) state.SkipWithError("the rows were not written");
  }
  const double written =
      static_cast<double>(state.iterations()) * static_cast<double>(rows->rows());
  state.counters["rows/s"] = benchmark::Counter(written, benchmark::Counter::kIsRate);
  state.counters["bytes/row"] = static_cast<double>(bytes) / written;
}
BENCHMARK(WriteParquet)->Unit(benchmark::kMillisecond);

void ReplayText(benchmark::State& state) {
  Run(state, [](uint64_t& bytes) {
    auto view = std::make_shared<follow::ReplayView>(std::nullopt);
    return [view, &bytes](const timeline::Entry& entry) {
      if (const auto line = view->Take(entry)) bytes += line->size();
      if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
        bytes += view->TickLine(*tick).size();
      }
      return absl::OkStatus();
    };
  });
}
BENCHMARK(ReplayText)->Unit(benchmark::kMillisecond);

void ReplayDelimited(benchmark::State& state) {
  Run(state, [](uint64_t& bytes) {
    struct Copy {
      std::unique_ptr<timeline::RecordWriter> writer;
      replay::RecordCopy copy;
      uint64_t waiting = 0;
      explicit Copy(uint64_t& bytes)
          : writer(timeline::NewDelimitedWriter([&bytes](std::span<const uint8_t> more) {
              bytes += more.size();
              return absl::OkStatus();
            })),
            copy(*writer) {}
    };
    auto copy = std::make_shared<Copy>(bytes);
    return [copy](const timeline::Entry& entry) {
      copy->copy.Take(entry);
      return ++copy->waiting % 256 == 0 ? copy->writer->Flush({}) : absl::OkStatus();
    };
  });
}
BENCHMARK(ReplayDelimited)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vcpulse

BENCHMARK_MAIN();

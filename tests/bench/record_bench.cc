// Whole recordings: processor time and bytes against `perf stat` on the same threads, and memory
// over an hour of ticks on an injected clock.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kvm/base/output_file.h"
#include "monitor/recorder/recording.h"
#include "monitor/sampler/tick_thread.h"
#include "monitor/timeline/entry.h"
#include "monitor/timeline/writer.h"
#include "tests/bench/busy_threads.h"
#include "tests/bench/record_to_disk.h"
#include "tests/bench/software_perf_events.h"

namespace vcpulse::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kVcpus = 64;

void PerfStat(const kvm::Vm& vm, const std::string& path, absl::Duration run) {
  std::string tids;
  for (const kvm::Vcpu& vcpu : vm.vcpus) {
    absl::StrAppend(&tids, tids.empty() ? "" : ",", vcpu.tid);
  }
  execlp("perf", "perf", "stat", "-e", "task-clock,context-switches,cpu-migrations,page-faults",
         "-I", "10", "--per-thread", "-j", "-t", tids.c_str(), "-o", path.c_str(), "--", "sleep",
         absl::StrCat(absl::ToInt64Seconds(run)).c_str(), nullptr);
  _exit(127);
}

// Processor time of a run, s: all of it, and what kRun of it takes once it goes on.
struct Spent {
  double whole_s = 0;
  double going_on_s = 0;
};
std::optional<Spent> SpentBy(const std::function<void(absl::Duration)>& run) {
  const std::optional<double> whole = CpuSecondsOf([&] { run(kRun); });
  const std::optional<double> twice = CpuSecondsOf([&] { run(2 * kRun); });
  if (!whole || !twice) return std::nullopt;
  return Spent{*whole, *twice - *whole};
}

// Every 10 ms, 64 threads, four events, to disk. range(0): what each thread works, us in 20 ms.
// Goals for threads at rest: ratio_bpf <= 0.1, ratio_read <= 0.4.
void RecordAgainstPerfStat(benchmark::State& state) {
  const BusyThreads threads(
      kVcpus, std::chrono::microseconds(state.range(0)),
      state.range(0) == 0 ? std::chrono::hours(1) : std::chrono::milliseconds(20));
  const kvm::Vm vm = threads.AsVm();
  const std::string ours = TemporaryFile("a.vpt");
  const std::string theirs = TemporaryFile("perf.json");
  const auto record = [&](std::string_view reader) {
    return SpentBy([&](absl::Duration run) {
      RecordToDisk({vm}, absl::Milliseconds(10), absl::Seconds(1), ours, reader, run);
    });
  };
  for (auto _ : state) {
    const std::optional<Spent> bpf = record("bpf");
    const std::optional<Spent> read = record("read");
    const std::optional<Spent> perf =
        SpentBy([&](absl::Duration run) { PerfStat(vm, theirs, run); });
    if (!bpf || !read || !perf) {
      state.SkipWithError("recording or perf stat failed: as root, with package linux-perf");
      break;
    }
    const double samples = 2 * kVcpus * absl::FDivDuration(kRun, absl::Milliseconds(10));
    state.counters["bpf_cpu_s"] = bpf->whole_s;
    state.counters["read_cpu_s"] = read->whole_s;
    state.counters["perf_cpu_s"] = perf->whole_s;
    state.counters["ratio_bpf"] = bpf->whole_s / perf->whole_s;
    state.counters["ratio_read"] = read->whole_s / perf->whole_s;
    state.counters["ratio_bpf_going_on"] = bpf->going_on_s / perf->going_on_s;
    state.counters["ratio_read_going_on"] = read->going_on_s / perf->going_on_s;
    state.counters["ours_bytes"] = FileBytes(ours) / samples;
    state.counters["perf_bytes"] = FileBytes(theirs) / samples;
  }
  fs::remove(ours);
  fs::remove(theirs);
}
BENCHMARK(RecordAgainstPerfStat)
    ->ArgName("work_us")
    ->Arg(0)
    ->Arg(200)
    ->Unit(benchmark::kSecond)
    ->Iterations(1);

// Bytes per vCPU-sample at `range(0)` ms. Goal: <= 24 at 100 ms with a flush each second.
void RecordedBytes(benchmark::State& state) {
  const BusyThreads threads(kVcpus, std::chrono::microseconds(200), std::chrono::milliseconds(20));
  const kvm::Vm vm = threads.AsVm();
  const std::string path = TemporaryFile("b.vpt");
  const absl::Duration interval = absl::Milliseconds(state.range(0));
  const absl::Duration flush = absl::Milliseconds(state.range(1));
  for (auto _ : state) {
    if (!CpuSecondsOf([&] { RecordToDisk({vm}, interval, flush, path); })) {
      state.SkipWithError("the recording failed");
    }
  }
  state.counters["bytes_per_vcpu_sample"] =
      FileBytes(path) / (kVcpus * absl::FDivDuration(kRun, interval));
  fs::remove(path);
}
BENCHMARK(RecordedBytes)
    ->ArgNames({"interval_ms", "flush_ms"})
    ->Args({100, 1000})
    ->Args({10, 10000})
    ->Unit(benchmark::kSecond)
    ->Iterations(1);

std::atomic<int64_t> injected_ns = 1'000'000'000;

double ResidentMiB() {
  size_t total = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// An hour of 100 ms ticks of 64 vCPUs on an injected clock. Goal: flat, under 64 MiB.
void MemoryOverAnHour(benchmark::State& state) {
  const BusyThreads threads(kVcpus, std::chrono::microseconds(200), std::chrono::milliseconds(20));
  SoftwarePerfEvents perf;
  const std::string path = TemporaryFile("c.vpt");
  constexpr uint64_t kTicks = 36'000;
  for (auto _ : state) {
    auto file = OutputFile::Create(path);
    auto writer = NewFileWriter(**file);
    recorder::Recording recording({.root = "/",
                                   .residency = {{.max_hz = 1e9}},
                                   .now_ns = [] { return injected_ns.fetch_add(100); }},
                                  perf, *writer);
    if (!recording.Track(threads.AsVm()).ok()) state.SkipWithError("the threads cannot be counted");
    recording.sampler().TakeCommands();
    for (uint64_t tick = 0; tick < kTicks; ++tick) {
      injected_ns += 100'000'000;
      recording.sampler().Tick(tick, injected_ns, injected_ns);
      recording.Drain();
      if (tick % 10 == 9) static_cast<void>(writer->Flush(timeline::TakeClockSnapshot()));
      if (tick == kTicks / 10) state.counters["rss_mib_after_a_tenth"] = ResidentMiB();
    }
    state.counters["rss_mib_at_the_end"] = ResidentMiB();
    state.counters["samples"] = static_cast<double>(recording.progress().samples);
  }
  fs::remove(path);
}
BENCHMARK(MemoryOverAnHour)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace vcpulse::bench

BENCHMARK_MAIN();

// Many VMs on one host: what a tick of 1,024 vCPUs costs against one of 64, and a rescan of them
// all.

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <deque>

#include "kvm/discovery/discovery.h"
#include "kvm/discovery/non_vmm_cache.h"
#include "tests/bench/busy_threads.h"
#include "tests/bench/record_to_disk.h"

namespace vcpulse::bench {
namespace {

constexpr int kVcpusPerVm = 8;

// So many processes of eight threads each, nearly idle like most guests.
class ManyVms {
 public:
  explicit ManyVms(int count) {
    for (int i = 0; i < count; ++i) {
      processes_.emplace_back(kVcpusPerVm, std::chrono::microseconds(20),
                              std::chrono::milliseconds(100));
    }
    for (const BusyThreads& process : processes_) vms.push_back(process.AsVm());
  }

  std::vector<kvm::Vm> vms;

 private:
  std::deque<BusyThreads> processes_;
};

// Memory that a child process leaves its result in.
struct Shared {
  recorder::Progress progress;
};

Shared& SharedMemory() {
  static void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, /*fd=*/-1, 0);
  return *static_cast<Shared*>(memory);
}

struct Run {
  double cpu_us_per_vcpu_sample = 0;
  double gaps = 0;
  double samples = 0;
};

std::optional<Run> RecordMany(int count, std::string_view reader) {
  const ManyVms many(count);
  const std::string path = TemporaryFile("scale.vpt");
  Shared& shared = SharedMemory();
  shared = {};
  const std::optional<double> cpu_s = CpuSecondsOf([&] {
    shared.progress =
        RecordToDisk(many.vms, absl::Milliseconds(100), absl::Seconds(1), path, reader);
  });
  std::filesystem::remove(path);
  if (!cpu_s || shared.progress.vcpu_samples == 0) return std::nullopt;
  const auto samples = static_cast<double>(shared.progress.vcpu_samples);
  return Run{*cpu_s * 1e6 / samples, static_cast<double>(shared.progress.gaps), samples};
}

// Every 100 ms for 10 s. Goals: no gap, ratio <= 1.3; at most 2 us per sample of 1,024 by BPF.
void ManyAgainstFew(benchmark::State& state, std::string_view reader) {
  for (auto _ : state) {
    const std::optional<Run> few = RecordMany(8, reader);
    const std::optional<Run> many = RecordMany(128, reader);
    if (!few || !many) {
      state.SkipWithError("a recording failed: as root, with enough descriptors (ulimit -n 16384)");
      break;
    }
    state.counters["us_per_sample_of_64"] = few->cpu_us_per_vcpu_sample;
    state.counters["us_per_sample_of_1024"] = many->cpu_us_per_vcpu_sample;
    state.counters["ratio"] = many->cpu_us_per_vcpu_sample / few->cpu_us_per_vcpu_sample;
    state.counters["samples_of_1024"] = many->samples;
    state.counters["gaps_of_64"] = few->gaps;
    state.counters["gaps_of_1024"] = many->gaps;
    if (many->gaps > 0 || many->samples < 98 * 1024) state.SkipWithError("ticks are missing");
    if (many->cpu_us_per_vcpu_sample > 1.3 * few->cpu_us_per_vcpu_sample) {
      state.SkipWithError("1,024 vCPUs cost more than 1.3 times as much each");
    }
  }
}
BENCHMARK_CAPTURE(ManyAgainstFew, bpf, "bpf")->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK_CAPTURE(ManyAgainstFew, read, "read")->Unit(benchmark::kSecond)->Iterations(1);

// What the control thread does once a second for 128 VMs of eight vCPUs: each of them is looked at
// anew, and so is who else is there. Goal: under 5 % of a core, so under 50 ms.
void RescanOf128Vms(benchmark::State& state) {
  const ManyVms many(128);
  const kvm::Discovery discovery;
  kvm::NonVmmCache strangers;
  absl::Duration now = absl::ZeroDuration();
  for (auto _ : state) {
    now += absl::Seconds(1);
    for (const kvm::Vm& vm : many.vms) {
      const auto same = discovery.Rescan(vm);
      if (!same.ok() || same->vcpus.size() != kVcpusPerVm) state.SkipWithError("a VM is lost");
    }
    benchmark::DoNotOptimize(discovery.FindOthers(many.vms, strangers, now));
  }
}
BENCHMARK(RescanOf128Vms)->Unit(benchmark::kMillisecond)->Iterations(60)->MeasureProcessCPUTime();

}  // namespace
}  // namespace vcpulse::bench

BENCHMARK_MAIN();

// What the view of `vcpulse top` costs, without a terminal: following a live recording, holding ten
// minutes while it is paused, and a large file (VCPULSE_BENCH_FILE=FILE, made by make_timeline).

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "monitor/metric/interval.h"
#include "monitor/timeline/writer.h"
#include "monitor/top/view.h"
#include "tests/fakes/synthetic_vm.h"

namespace vcpulse::bench {
namespace {

constexpr int64_t kInterval_ns = 100'000'000;
constexpr int kTicksPerChunk = 8;  // as `record` flushes
constexpr top::Size kScreen = {.columns = 120, .rows = 50};

// Chunks of a recording that goes on for ever.
class Endless {
 public:
  Endless(uint32_t vms, uint32_t vcpus) {
    const std::vector<fakes::Load> loads(vcpus, fakes::Load::kBusy);
    for (uint32_t vm = 1; vm <= vms; ++vm) vms_.emplace_back(loads, kInterval_ns, vm);
    v1::TimelineRecord session;
    session.mutable_session()->set_stream_id("endless");
    session.mutable_session()->set_interval_ns(kInterval_ns);
    session.mutable_session()->set_residency_method(v1::RESIDENCY_METHOD_MAX_FREQUENCY);
    session.mutable_session()->set_max_hz(3e9);
    writer_->Add(std::move(session), vms_.front().VcpuSet(1, 1).mono_ns());
    for (uint32_t vm = 1; vm <= vms; ++vm) {
      v1::TimelineRecord set;
      *set.mutable_vcpu_set() = vms_[vm - 1].VcpuSet(vm, 1);
      writer_->Add(std::move(set), vms_.front().VcpuSet(1, 1).mono_ns());
    }
  }

  // The next one; valid until the next call.
  const std::vector<uint8_t>& Next() {
    int64_t now_ns = 0;
    for (int tick = 0; tick < kTicksPerChunk; ++tick) {
      for (uint32_t vm = 0; vm < vms_.size(); ++vm) {
        const core::Sample& sample = vms_[vm].Next();
        now_ns = sample.wake_ns;
        writer_->AddTick(vm + 1, 1, sample, vms_[vm].Verdicts());
      }
    }
    v1::ClockSnapshot clock;
    clock.set_mono_ns(now_ns);
    clock.set_realtime_ns(now_ns + 1'767'225'600'000'000'000);
    (void)writer_->Flush(clock);
    return chunk_;
  }

 private:
  std::vector<fakes::SyntheticVm> vms_;
  std::vector<uint8_t> chunk_;
  std::unique_ptr<timeline::RecordWriter> writer_ =
      timeline::NewChunkWriter({1}, [this](std::span<const uint8_t> bytes) {
        chunk_.assign(bytes.begin(), bytes.end());
        return absl::OkStatus();
      });
};

bool NeverStop() { return false; }

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double ResidentMiB() {
  std::ifstream file("/proc/self/statm");
  double all = 0;
  double resident = 0;
  file >> all >> resident;
  return resident * 4096 / (1 << 20);
}

// Each iteration is 0.8 s of a recording at 100 ms. The counter is what that takes of a core.
void BM_FollowAndDraw(benchmark::State& state) {
  const auto vms = static_cast<uint32_t>(state.range(0));
  const auto vcpus = static_cast<uint32_t>(state.range(1));
  Endless recording(vms, vcpus);
  top::ChunkStore store{top::ChunkStore::Limits()};
  top::View view(store,
                 {.source = {.name = "live", .is_live = true}, .keymap = {}, .size = kScreen});
  double seconds = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const std::vector<uint8_t>& chunk = recording.Next();
    const double before = ProcessorSeconds();
    state.ResumeTiming();
    (void)store.Add("", chunk);
    view.StoreChanged();
    view.Load(NeverStop);
    benchmark::DoNotOptimize(view.Draw());
    state.PauseTiming();
    seconds += ProcessorSeconds() - before;
    state.ResumeTiming();
  }
  state.counters["percent_of_core"] = benchmark::Counter(
      seconds * 100 /
      (static_cast<double>(state.iterations()) * kTicksPerChunk * kInterval_ns / 1e9));
}
BENCHMARK(BM_FollowAndDraw)
    ->Args({1, 4})
    ->Args({8, 8})
    ->Args({128, 8})
    ->Unit(benchmark::kMillisecond);

// The alternative: the same chunks read by any other reader, and nothing drawn.
void BM_ReadAlone(benchmark::State& state) {
  Endless recording(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)));
  metric::IntervalReader reader;
  for (auto _ : state) {
    state.PauseTiming();
    const std::vector<uint8_t>& chunk = recording.Next();
    state.ResumeTiming();
    (void)top::ForEachEntry(
        chunk, [&](const timeline::Entry& entry) { return reader.Add(entry, metric::PassOver); });
  }
}
BENCHMARK(BM_ReadAlone)->Args({1, 4})->Args({8, 8})->Args({128, 8})->Unit(benchmark::kMillisecond);

// An hour of 64 vCPUs at 100 ms goes by while the view is paused.
void BM_PausedForAnHour(benchmark::State& state) {
  for (auto _ : state) {
    Endless recording(8, 8);
    top::ChunkStore store{top::ChunkStore::Limits()};
    top::View view(store,
                   {.source = {.name = "live", .is_live = true}, .keymap = {}, .size = kScreen});
    double after_ten_minutes = 0;
    constexpr int kTicks = 36'000;
    for (int tick = 0; tick < kTicks; tick += kTicksPerChunk) {
      (void)store.Add("", recording.Next());
      view.StoreChanged();
      view.Load(NeverStop);
      if (tick == 8) view.Take(top::KeyEvent{"space"});
      if (tick == 8000) after_ten_minutes = ResidentMiB();
    }
    state.counters["held_MiB"] = static_cast<double>(store.held_bytes()) / (1 << 20);
    state.counters["resident_MiB"] = ResidentMiB();
    state.counters["resident_MiB_at_13min"] = after_ten_minutes;
    state.counters["held_s"] =
        static_cast<double>(store.Span()->end_ns - store.Span()->begin_ns) / 1e9;
  }
}
BENCHMARK(BM_PausedForAnHour)->Iterations(1)->Unit(benchmark::kSecond);

std::string BenchFile(benchmark::State& state) {
  const char* file = std::getenv("VCPULSE_BENCH_FILE");
  if (file == nullptr) state.SkipWithError("VCPULSE_BENCH_FILE names no timeline");
  return file == nullptr ? "" : file;
}

// Opens the file and draws it after so many chunks.
void OpenAndDraw(benchmark::State& state, uint64_t most_chunks) {
  const std::string file = BenchFile(state);
  for (auto _ : state) {
    auto store = top::ChunkStore::OpenFile(file);
    if (!store.ok()) {
      state.SkipWithError("cannot be opened");
      break;
    }
    top::View view(*store, {.source = {.name = file}, .keymap = {}, .size = kScreen});
    uint64_t chunks = 0;
    view.Load([&] { return ++chunks > most_chunks; });
    benchmark::DoNotOptimize(view.Draw());
    state.counters["chunks"] = static_cast<double>(store->end());
    state.counters["resident_MiB"] = ResidentMiB();
  }
}

// Until the first picture; all of it is read meanwhile only as far as that takes.
void BM_OpenFile(benchmark::State& state) { OpenAndDraw(state, 10); }
BENCHMARK(BM_OpenFile)->Unit(benchmark::kMillisecond);

// Until the whole picture of the whole file is there.
void BM_ShowWholeFile(benchmark::State& state) { OpenAndDraw(state, UINT64_MAX); }
BENCHMARK(BM_ShowWholeFile)->Unit(benchmark::kMillisecond);

// To another minute of it and back.
void BM_Jump(benchmark::State& state) {
  const std::string file = BenchFile(state);
  auto store = top::ChunkStore::OpenFile(file);
  if (!store.ok()) return state.SkipWithError("cannot be opened");
  top::View view(*store, {.source = {.name = file}, .keymap = {}, .size = kScreen});
  for (int i = 0; i < 5; ++i) view.Take(top::KeyEvent{"+"});  // 60 s
  bool there = false;
  for (auto _ : state) {
    there = !there;
    for (const char* key : {there ? "J" : "j", "1", "0", "m", "enter"}) {
      view.Take(top::KeyEvent{key});
    }
    view.Load(NeverStop);
    benchmark::DoNotOptimize(view.Draw());
  }
}
BENCHMARK(BM_Jump)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vcpulse::bench

BENCHMARK_MAIN();

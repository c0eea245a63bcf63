// How late ticks are without streaming, with it, and where the spool is full and the collector does
// not answer: side by side, each several times in turns, 4 threads each millisecond.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "kvm/base/clock.h"
#include "monitor/control/listening_socket.h"
#include "monitor/recorder/recording.h"
#include "monitor/recorder/session_record.h"
#include "monitor/sampler/tick_thread.h"
#include "monitor/stream/net/collector.h"
#include "monitor/stream/net/uplink.h"
#include "monitor/timeline/entry.h"
#include "monitor/timeline/writer.h"
#include "tests/bench/busy_threads.h"
#include "tests/bench/software_perf_events.h"
#include "tests/fakes/temporary_folder.h"

namespace vcpulse::bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr absl::Duration kRunOfEach = absl::Seconds(10);

// Notes each tick's lateness on its way to the next writer.
class LatenessWriter final : public timeline::RecordWriter {
 public:
  LatenessWriter(std::unique_ptr<timeline::RecordWriter> next, std::vector<int64_t>* late_ns)
      : next_(std::move(next)), late_ns_(late_ns) {}

  void AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
               std::span<const core::Verdict> verdicts) override {
    late_ns_->push_back(sample.wake_ns - sample.deadline_ns);
    next_->AddTick(vm, epoch, sample, verdicts);
  }
  void Add(v1::TimelineRecord record, int64_t mono_ns) override {
    next_->Add(std::move(record), mono_ns);
  }
  void EndEpoch(uint32_t vm, uint32_t epoch) override { next_->EndEpoch(vm, epoch); }
  absl::Status Flush(const v1::ClockSnapshot& clock) override { return next_->Flush(clock); }

 private:
  std::unique_ptr<timeline::RecordWriter> next_;
  std::vector<int64_t>* late_ns_;
};

std::vector<int64_t> RecordLateness(const kvm::Vm& vm, const timeline::ByteSink& sink) {
  std::vector<int64_t> late_ns;
  SoftwarePerfEvents perf;
  timeline::StreamId id{};
  id.fill(7);
  LatenessWriter writer(
      timeline::NewChunkWriter(id, sink, {.max_buffered_bytes = timeline::kBufferedBytesForWire}),
      &late_ns);
  v1::TimelineRecord record;
  *record.mutable_session() = recorder::MakeSession({}, {});
  writer.Add(std::move(record), MonotonicNow_ns());
  recorder::Recording recording({.root = "/",
                                 .interval = absl::Milliseconds(1),
                                 .residency = {{.max_hz = 1e9}},
                                 .now_ns = MonotonicNow_ns},
                                perf, writer);
  if (!recording.Track(vm).ok()) return late_ns;
  auto ticker =
      sampler::TickThread::Start(recording.sampler(), {.interval = absl::Milliseconds(1)});
  const absl::Time end = absl::Now() + kRunOfEach;
  for (int i = 0; absl::Now() < end; ++i) {
    absl::SleepFor(absl::Milliseconds(50));
    recording.Drain();
    if (i % 16 == 0) static_cast<void>(writer.Flush(timeline::TakeClockSnapshot()));
  }
  recording.RetireAll();
  while (!recording.idle()) {
    (*ticker)->Wake();
    recording.Drain();
  }
  return late_ns;
}

void Report(benchmark::State& state, std::vector<int64_t> late_ns) {
  if (late_ns.empty()) return state.SkipWithError("nothing was recorded");
  std::ranges::sort(late_ns);
  const auto at = [&](double share) {
    return static_cast<double>(
               late_ns[static_cast<size_t>(share * static_cast<double>(late_ns.size() - 1))]) *
           1e-3;
  };
  state.counters["p50_us"] = at(0.5);
  state.counters["p99_us"] = at(0.99);
  state.counters["p99.9_us"] = at(0.999);
  state.counters["max_us"] = at(1);
  state.counters["ticks"] = static_cast<double>(late_ns.size());
}

stream::Uplink::Options AgentOptions(const fs::path& folder) {
  stream::Uplink::Options options;
  options.addresses = {
      {.kind = stream::Address::Kind::kUnix, .path = (folder / "collector").string()}};
  options.identity = {.agent_id = "bench", .boot_id = "boot"};
  options.spool.directory = (folder / "spool").string();
  return options;
}

kvm::Vm ThreadsAsVm() {
  static const BusyThreads threads(4, std::chrono::microseconds(100), std::chrono::milliseconds(5));
  return threads.AsVm();
}

void WithoutStreaming(benchmark::State& state) {
  std::vector<int64_t> late_ns;
  for (auto _ : state) {
    late_ns = RecordLateness(ThreadsAsVm(), [](auto) { return absl::OkStatus(); });
  }
  Report(state, late_ns);
}

void WithStreaming(benchmark::State& state) {
  std::vector<int64_t> late_ns;
  for (auto _ : state) {
    const fs::path folder = fakes::MakeTemporaryFolder();
    stream::Collector::Options options;
    options.listen = AgentOptions(folder).addresses;
    options.directory = (folder / "collected").string();
    const auto collector = stream::Collector::Start(options);
    auto agent = stream::Uplink::Start(AgentOptions(folder));
    late_ns = RecordLateness(ThreadsAsVm(), [&](std::span<const uint8_t> chunk) {
      (*agent)->Offer(chunk);
      return absl::OkStatus();
    });
    if (!(*agent)->Finish(seconds(20)).ok()) state.SkipWithError("not acknowledged");
    fs::remove_all(folder);
  }
  Report(state, late_ns);
}

void SpoolFullAndCollectorStalled(benchmark::State& state) {
  std::vector<int64_t> late_ns;
  for (auto _ : state) {
    const fs::path folder = fakes::MakeTemporaryFolder();
    // Connections are taken and nobody reads.
    const auto stalled = control::ListeningSocket::Open((folder / "collector").string());
    auto options = AgentOptions(folder);
    options.spool.max_disk_bytes = 128u << 10;
    options.spool.max_memory_bytes = 64u << 10;
    auto agent = stream::Uplink::Start(options);
    late_ns = RecordLateness(ThreadsAsVm(), [&](std::span<const uint8_t> chunk) {
      (*agent)->Offer(chunk);
      return absl::OkStatus();
    });
    state.counters["lost_chunks"] = static_cast<double>((*agent)->stats().lost_chunks);
    fs::remove_all(folder);
  }
  Report(state, late_ns);
}

#define IN_TURNS(number)                                                               \
  BENCHMARK(WithoutStreaming)->Iterations(1)->UseRealTime()->Unit(benchmark::kSecond); \
  BENCHMARK(WithStreaming)->Iterations(1)->UseRealTime()->Unit(benchmark::kSecond);    \
  BENCHMARK(SpoolFullAndCollectorStalled)->Iterations(1)->UseRealTime()->Unit(benchmark::kSecond)
IN_TURNS(1);
IN_TURNS(2);
IN_TURNS(3);

}  // namespace
}  // namespace vcpulse::bench

BENCHMARK_MAIN();

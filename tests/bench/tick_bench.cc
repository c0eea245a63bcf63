// What a tick costs against the least that any program must do for the same numbers. Each benchmark
// runs both sides in turn, so that their ratio means something on a noisy machine.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/fd.h"
#include "kvm/counters/counter_group.h"
#include "kvm/events/event_sets.h"
#include "monitor/sampler/sampler.h"
#include "monitor/sampler/tick_thread.h"
#include "tests/bench/busy_threads.h"
#include "tests/bench/software_perf_events.h"

namespace vcpulse::bench {
namespace {

constexpr int kVcpus = 64;

using vcpulse::MonotonicNow_ns;

template <typename T>
T OrExit(kvm::OrErrno<T> value, const char* what) {
  if (!value.ok()) {
    std::cerr << what << ": errno " << value.error << "\n";
    std::exit(1);
  }
  return std::move(value.value);
}

// The four events that SoftwarePerfEvents opens.
std::span<const kvm::Event> FourEvents() { return kvm::EventsOf(kvm::EventSet::kCore).first(4); }

std::vector<kvm::CounterGroup> OpenGroups(kvm::PerfEvents& perf, const kvm::Vm& vm) {
  std::vector<kvm::CounterGroup> groups;
  std::vector<kvm::RefusedEvent> refused;
  for (const kvm::Vcpu& vcpu : vm.vcpus) {
    groups.push_back(
        OrExit(kvm::CounterGroup::Open(perf, vcpu.tid, FourEvents(), refused), "opening a group"));
  }
  return groups;
}

// Leaders and schedstat descriptors without anything of ours around them.
struct BareVcpu {
  std::vector<Fd> events;  // leader first
  Fd schedstat;
};

std::vector<BareVcpu> OpenBare(kvm::PerfEvents& perf, const kvm::Vm& vm, bool grouped) {
  std::vector<BareVcpu> bare;
  for (const kvm::Vcpu& vcpu : vm.vcpus) {
    BareVcpu one;
    for (const kvm::Event& event : FourEvents()) {
      perf_event_attr attr = kvm::AttrOf(event, one.events.empty() || !grouped);
      const int leader = grouped && !one.events.empty() ? one.events.front().get() : -1;
      one.events.push_back(OrExit(perf.Open(attr, vcpu.tid, leader), "opening an event"));
      if (leader < 0) perf.EnableGroup(one.events.back().get());
    }
    const std::string path = absl::StrCat("/proc/", vm.pid, "/task/", vcpu.tid, "/schedstat");
    one.schedstat = Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    bare.push_back(std::move(one));
  }
  return bare;
}

void BareLoop(std::vector<BareVcpu>& vcpus) {
  std::array<uint64_t, 32> words;
  std::array<char, 96> text;
  for (BareVcpu& vcpu : vcpus) {
    benchmark::DoNotOptimize(read(vcpu.events.front().get(), words.data(), sizeof(words)));
  }
  for (BareVcpu& vcpu : vcpus) {
    benchmark::DoNotOptimize(pread(vcpu.schedstat.get(), text.data(), text.size(), 0));
  }
  benchmark::DoNotOptimize(words);
  benchmark::DoNotOptimize(text);
}

// Runs both sides in turn and reports ns per vCPU of each, and ours / theirs.
template <typename Ours, typename Theirs>
void Compare(benchmark::State& state, const Ours& ours, const Theirs& theirs) {
  int64_t ours_ns = 0;
  int64_t theirs_ns = 0;
  for (auto _ : state) {
    const int64_t start_ns = MonotonicNow_ns();
    ours();
    const int64_t middle_ns = MonotonicNow_ns();
    theirs();
    const int64_t end_ns = MonotonicNow_ns();
    ours_ns += middle_ns - start_ns;
    theirs_ns += end_ns - middle_ns;
  }
  const double each = static_cast<double>(state.iterations()) * kVcpus;
  state.counters["ours_ns"] = static_cast<double>(ours_ns) / each;
  state.counters["theirs_ns"] = static_cast<double>(theirs_ns) / each;
  state.counters["ratio"] = static_cast<double>(ours_ns) / static_cast<double>(theirs_ns);
}

// One tick of the sampler for 64 vCPUs that all ran, handover included, against a bare loop of one
// group read(2) and one schedstat pread(2) each. Goal: ratio <= 1.15.
void TickAgainstBareLoop(benchmark::State& state) {
  const BusyThreads threads(kVcpus, std::chrono::microseconds(0), std::chrono::seconds(10));
  const kvm::Vm vm = threads.AsVm();
  SoftwarePerfEvents perf;
  kvm::OpenedGroups opened;
  opened.vcpus = vm.vcpus;
  for (kvm::CounterGroup& group : OpenGroups(perf, vm)) {
    opened.groups.emplace_back().push_back(std::move(group));
  }
  for (const kvm::Vcpu& vcpu : vm.vcpus) {
    opened.scheduling.push_back(
        std::move(kvm::ThreadScheduling::Open("/", vm.pid, vcpu.tid).value));
  }
  auto epoch = sampler::Epoch::Start(1, 1, opened, 4, nullptr);
  // Negative: the threads sleep here, but count as vCPUs that ran.
  sampler::Sampler sampler({.now_ns = MonotonicNow_ns, .policy = {.state_below = -1}});
  sampler.Add(epoch->get());
  sampler.TakeCommands();
  std::vector<BareVcpu> bare = OpenBare(perf, vm, /*grouped=*/true);
  uint64_t tick = 0;
  sampler::Handover handover;
  Compare(
      state,
      [&] {
        const int64_t now_ns = MonotonicNow_ns();
        sampler.Tick(tick++, now_ns, now_ns);
        while (sampler.Take(handover)) handover.epoch->Recycle(handover.sample);
      },
      [&] { BareLoop(bare); });
}
BENCHMARK(TickAgainstBareLoop)->Unit(benchmark::kMicrosecond)->MinTime(2.0);

// The counter part alone: one group of four events against four descriptors. Goal: ratio <= 0.4.
void GroupAgainstFourDescriptors(benchmark::State& state) {
  const BusyThreads threads(kVcpus, std::chrono::microseconds(0), std::chrono::seconds(10));
  const kvm::Vm vm = threads.AsVm();
  SoftwarePerfEvents perf;
  std::vector<kvm::CounterGroup> groups = OpenGroups(perf, vm);
  for (kvm::CounterGroup& group : groups) group.Enable();
  std::vector<BareVcpu> four = OpenBare(perf, vm, /*grouped=*/false);
  std::array<uint64_t, 32> words;
  Compare(
      state,
      [&] {
        for (kvm::CounterGroup& group : groups) benchmark::DoNotOptimize(group.Read());
      },
      [&] {
        for (const BareVcpu& vcpu : four) {
          for (const Fd& event : vcpu.events) {
            benchmark::DoNotOptimize(read(event.get(), words.data(), sizeof(words)));
          }
        }
      });
}
BENCHMARK(GroupAgainstFourDescriptors)->Unit(benchmark::kMicrosecond)->MinTime(2.0);

}  // namespace
}  // namespace vcpulse::bench

BENCHMARK_MAIN();

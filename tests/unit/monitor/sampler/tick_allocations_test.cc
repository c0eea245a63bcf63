// The tick path is sacred: no allocation. Every operator new of this program is counted.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "monitor/core/epoch_classifier.h"
#include "monitor/sampler/sampler.h"
#include "tests/fakes/sampled_vm.h"

namespace {
std::atomic<uint64_t> allocations = 0;
}

// Not inlined: g++ takes an inlined pair for a mismatch of new and free.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// What std::stable_sort asks for its buffer; ASan of g++ 14 has one of its own.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace vcpulse::sampler {
namespace {

TEST(TickAllocations, NoneInSamplesGapsStatesAndCommands) {
  fakes::ProcDir proc;
  fakes::FakePerfEvents perf;
  fakes::SampledVm vm(perf, proc, "web", 10, 11, 8);
  Sampler sampler({.now_ns = fakes::FakeClock::Now});
  const auto epoch = vm.StartEpoch(1, 1, 4, kvm::EventSet::kCore);
  const auto other = vm.StartEpoch(1, 2, 4, kvm::EventSet::kCore);
  sampler.Add(epoch.get());
  Handover handover;
  uint64_t samples = 0;
  uint64_t gaps = 0;
  const auto tick = [&](uint64_t number) {
    const int64_t now = fakes::FakeClock::Now();
    sampler.TakeCommands();
    sampler.Tick(number, now, now);
    sampler.Missed({number, number}, now);
  };
  const auto drain = [&] {
    while (sampler.Take(handover)) {
      if (handover.kind == Handover::Kind::kSample) ++samples;
      if (handover.kind == Handover::Kind::kReadFailed) ++gaps;
      if (handover.sample != nullptr) handover.epoch->Recycle(handover.sample);
    }
  };
  tick(0);
  drain();

  const uint64_t before = allocations;
  ASSERT_GT(before, 0u) << "the counting allocator is not in place";
  for (uint64_t number = 1; number <= 1000; ++number) {
    vm.group(0).read_error = number % 10 == 0 ? EIO : 0;
    if (number == 400) sampler.Add(other.get());
    if (number == 500) sampler.Retire(epoch.get());
    tick(number);
    drain();
  }
  EXPECT_EQ(allocations - before, 0u);
  EXPECT_GT(samples, 900u);
  EXPECT_GT(gaps, 90u);
}

// Groups that take turns, or those of several core PMUs.
TEST(TickAllocations, NoneWithThreeGroupsPerVcpu) {
  fakes::ProcDir proc;
  fakes::FakePerfEvents perf;
  fakes::SampledVm vm(perf, proc, "web", 10, 11, 2);
  std::vector<kvm::VcpuGroups> groups(2);
  std::vector<kvm::RefusedEvent> refused;
  for (size_t v = 0; v < 2; ++v) {
    for (int g = 0; g < 3; ++g) {
      groups[v].push_back(
          std::move(kvm::CounterGroup::Open(perf, vm.tid(static_cast<int>(v)),
                                            kvm::EventsOf(kvm::EventSet::kMin), refused)
                        .value));
    }
  }
  const auto epoch = vm.StartEpoch(1, 1, 4, std::move(groups));
  Sampler sampler({.now_ns = fakes::FakeClock::Now});
  sampler.Add(epoch.get());
  core::EpochClassifier classifier(
      {.vcpus = 2, .slots = {.cycles = 0, .instructions = 1}, .core_pmus = 3},
      core::Classifier::kEvidence, {}, 100'000'000);
  core::ResidencyEstimator residency(std::vector<core::ResidencyBasis>(3));
  std::vector<core::Verdict> verdicts(2);
  Handover handover;
  uint64_t samples = 0;
  uint64_t before = 0;
  for (uint64_t number = 0; number <= 1000; ++number) {
    if (number == 1) before = allocations;
    const int64_t now = fakes::FakeClock::Now();
    sampler.TakeCommands();
    sampler.Tick(number, now, now);
    while (sampler.Take(handover)) {
      ASSERT_EQ(handover.sample->further.size(), 4u);
      classifier.Classify(*handover.sample, residency, verdicts);
      handover.epoch->Recycle(handover.sample);
      ++samples;
    }
  }
  EXPECT_EQ(allocations - before, 0u);
  EXPECT_EQ(samples, 1001u);
}

}  // namespace
}  // namespace vcpulse::sampler

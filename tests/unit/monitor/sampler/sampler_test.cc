#include "monitor/sampler/sampler.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <span>
#include <vector>

#include "tests/unit/monitor/sampler/sampler_fixture.h"

namespace vcpulse::sampler {
namespace {

TEST_F(SamplerTest, ATickIsOneSampleOfEveryVcpu) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 3);
  const auto epoch = vm.StartEpoch(1, 1, 4);
  ASSERT_TRUE(sampler_.Add(epoch.get()));
  for (int i = 0; i < 3; ++i) {
    vm.Ran(i, 90'000'000, 1000 + i, 2000 + i);
    vm.SetScheduling(i, 80 + i, 7 + i);
  }
  const auto all = Tick(5);
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].kind, Handover::Kind::kSample);
  EXPECT_FALSE(all[0].last);
  const core::Sample& sample = *all[0].sample;
  EXPECT_EQ(sample.tick, 5u);
  EXPECT_EQ(sample.wake_ns - sample.deadline_ns, 5000);
  ASSERT_EQ(sample.vcpus.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i) {
    const core::VcpuSample& vcpu = sample.vcpus[i];
    EXPECT_EQ(vcpu.counts[0], 1000 + i);
    EXPECT_EQ(vcpu.counts[1], 2000 + i);
    EXPECT_EQ(vcpu.time_enabled_ns, 90'000'000u);
    EXPECT_TRUE(vcpu.has_scheduler_times);
    EXPECT_EQ(vcpu.run_ns, 80 + i);
    EXPECT_EQ(vcpu.run_delay_ns, 7 + i);
    EXPECT_LT(vcpu.read_begin_ns, vcpu.read_end_ns);
  }
  // Each read is stamped, in turn.
  EXPECT_EQ(sample.vcpus[0].read_end_ns, sample.vcpus[1].read_begin_ns);
  EXPECT_EQ(vm.group(0).reads, 1);
}

// Groups that take turns are each read whole, in the order of the set, in the same tick.
TEST_F(SamplerTest, FurtherGroupsAreReadWithTheirVcpu) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 2);
  constexpr uint64_t kMisses = PERF_COUNT_HW_CACHE_MISSES;
  std::vector<kvm::VcpuGroups> groups(2);
  std::vector<kvm::RefusedEvent> refused;
  const kvm::Event misses{.name = "cache-misses", .type = PERF_TYPE_HARDWARE, .config = kMisses};
  for (size_t i = 0; i < 2; ++i) {
    const pid_t tid = vm.tid(static_cast<int>(i));
    perf_.own_groups[{tid, kMisses}] = {
        .time_enabled_ns = 40 + i, .time_running_ns = 20 + i, .counts = {{kMisses, 1000 + i}}};
    const auto cycles = kvm::EventsOf(kvm::EventSet::kMin);
    groups[i].push_back(std::move(kvm::CounterGroup::Open(perf_, tid, cycles, refused).value));
    groups[i].push_back(
        std::move(kvm::CounterGroup::Open(perf_, tid, {&misses, 1}, refused).value));
  }
  const auto epoch = vm.StartEpoch(1, 1, 4, std::move(groups));
  EXPECT_TRUE((perf_.own_groups[{vm.tid(1), kMisses}].enabled));
  sampler_.Add(epoch.get());
  const auto all = Tick(0);
  ASSERT_EQ(all.size(), 1u);
  const core::Sample& sample = *all[0].sample;
  ASSERT_EQ(sample.FurtherGroups(), 1u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(sample.further[i].time_enabled_ns, 40 + i);
    EXPECT_EQ(sample.further[i].time_running_ns, 20 + i);
    EXPECT_EQ(sample.further[i].counts[0], 1000 + i);
  }
  epoch->Recycle(all[0].sample);
  perf_.own_groups[{vm.tid(1), kMisses}].read_error = EIO;
  const auto failed = Tick(1);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].kind, Handover::Kind::kReadFailed);
  EXPECT_EQ(failed[0].vcpu, 1u);
}

// Issue point 6: one vCPU fails for one tick. That tick is one gap which names it; the next sample
// is cumulative, so its delta spans both intervals; the other VM lost nothing.
TEST_F(SamplerTest, OneFailedReadCostsThatVmThatTickOnly) {
  fakes::SampledVm web(perf_, proc_, "web", 10, 11, 3);
  fakes::SampledVm db(perf_, proc_, "db", 20, 21, 1);
  const auto web_epoch = web.StartEpoch(1, 1, 4);
  const auto db_epoch = db.StartEpoch(2, 1, 4);
  sampler_.Add(web_epoch.get());
  sampler_.Add(db_epoch.get());
  const auto run = [&] {
    for (int i = 0; i < 3; ++i) web.Ran(i, 100'000'000, 1000, 500);
    db.Ran(0, 100'000'000, 1000, 500);
  };
  run();
  const auto first = Tick(0);
  ASSERT_EQ(first.size(), 2u);
  const core::Sample before = *first[0].sample;

  run();
  web.group(1).read_error = EIO;
  const auto failed = Tick(1);
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[0].kind, Handover::Kind::kReadFailed);
  EXPECT_EQ(failed[0].epoch, web_epoch.get());
  EXPECT_EQ(failed[0].vcpu, 1u);
  EXPECT_EQ(failed[0].error, EIO);
  EXPECT_EQ(failed[0].ticks.first, 1u);
  EXPECT_EQ(failed[1].kind, Handover::Kind::kSample);
  EXPECT_EQ(failed[1].epoch, db_epoch.get());
  web_epoch->Recycle(failed[0].sample);

  run();
  web.group(1).read_error = 0;
  const auto after = Tick(2);
  ASSERT_EQ(after.size(), 2u);
  ASSERT_EQ(after[0].kind, Handover::Kind::kSample);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(after[0].sample->vcpus[i].counts[0] - before.vcpus[i].counts[0], 2000u) << i;
    EXPECT_NEAR(
        static_cast<double>(after[0].sample->vcpus[i].read_end_ns - before.vcpus[i].read_end_ns),
        200e6, 1e4);
  }
}

// The memory of a failed read must come back, or gaps would eat it up.
TEST_F(SamplerTest, FailedReadsLeakNoMemory) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 1);
  const auto epoch = vm.StartEpoch(1, 1, 2);
  sampler_.Add(epoch.get());
  vm.group(0).read_error = EIO;
  for (uint64_t tick = 0; tick < 10; ++tick) {
    const auto all = Tick(tick);
    ASSERT_EQ(all.size(), 1u);
    ASSERT_EQ(all[0].kind, Handover::Kind::kReadFailed) << tick;
    epoch->Recycle(all[0].sample);
  }
}

// Rule 3: the state is read in just the case where hardly anything ran.
TEST_F(SamplerTest, ThreadStateIsReadOnlyWhereHardlyAnythingRan) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 4);
  const auto epoch = vm.StartEpoch(1, 1, 4);
  sampler_.Add(epoch.get());
  const char states[] = {'S', 'R', 'T', 'R'};
  for (int i = 0; i < 4; ++i) vm.SetState(i, states[i]);
  for (const Handover& handover : Tick(0)) epoch->Recycle(handover.sample);
  vm.Ran(3, 11'000'000, 1, 1);  // 11 % of the tick
  const auto all = Tick(1);
  ASSERT_EQ(all.size(), 1u);
  const auto& vcpus = all[0].sample->vcpus;
  EXPECT_EQ(vcpus[0].state, core::ThreadState::kBlocked);
  EXPECT_EQ(vcpus[1].state, core::ThreadState::kRunnable);
  EXPECT_EQ(vcpus[2].state, core::ThreadState::kStopped);
  EXPECT_EQ(vcpus[3].state, core::ThreadState::kNotRead);
}

// One part in ten of this interval is still hardly anything, whatever ran before it.
TEST_F(SamplerTest, ThreadStateIsOfTheLastInterval) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 2);
  const auto epoch = vm.StartEpoch(1, 1, 4);
  sampler_.Add(epoch.get());
  for (int i = 0; i < 2; ++i) vm.Ran(i, 90'000'000, 1, 1);
  Tick(0);
  vm.Ran(1, 10'000'000, 1, 1);
  const auto all = Tick(1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].sample->vcpus[0].state, core::ThreadState::kBlocked);
  EXPECT_EQ(all[0].sample->vcpus[1].state, core::ThreadState::kBlocked);
}

TEST_F(SamplerTest, AnEpochEnablesTheGroupsOfEveryVcpu) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 3);
  const auto epoch = vm.StartEpoch(1, 1, 4);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(vm.group(i).enabled) << i;
}

// A full queue never blocks the tick and never loses silently: one gap names the ticks.
TEST_F(SamplerTest, WithoutFreeMemoryTheTicksBecomeOneGap) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 1);
  const auto epoch = vm.StartEpoch(1, 1, 2);
  sampler_.Add(epoch.get());
  const auto a = Tick(0);
  const auto b = Tick(1);
  ASSERT_EQ(a.size(), 1u);
  ASSERT_EQ(b.size(), 1u);
  EXPECT_TRUE(Tick(2).empty() && Tick(3).empty());  // both buffers are out
  epoch->Recycle(a[0].sample);
  epoch->Recycle(b[0].sample);
  const auto all = Tick(4);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].kind, Handover::Kind::kQueueFull);
  EXPECT_EQ(all[0].ticks.first, 2u);
  EXPECT_EQ(all[0].ticks.last, 3u);
  EXPECT_EQ(all[1].kind, Handover::Kind::kSample);
  EXPECT_EQ(all[1].sample->tick, 4u);
}

TEST_F(SamplerTest, DroppedTicksAreSaidEvenWhenTheEpochEnds) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 1);
  const auto epoch = vm.StartEpoch(1, 1, 1);
  sampler_.Add(epoch.get());
  Tick(0);
  Tick(1);
  sampler_.Retire(epoch.get());
  const auto all = Tick(2);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].kind, Handover::Kind::kQueueFull);
  EXPECT_EQ(all[0].ticks.last, 1u);
  EXPECT_EQ(all[1].kind, Handover::Kind::kRetired);
}

TEST_F(SamplerTest, RetiredIsTheLastWordOnAnEpoch) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 1);
  const auto epoch = vm.StartEpoch(1, 1, 4);
  sampler_.Add(epoch.get());
  ASSERT_EQ(Tick(0).size(), 1u);
  sampler_.Retire(epoch.get());
  const auto all = Tick(1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, Handover::Kind::kRetired);
  EXPECT_EQ(all[0].epoch, epoch.get());
  EXPECT_TRUE(Tick(2).empty());
}

// The thread went between discovery and opening: its counters are good, and the last.
TEST_F(SamplerTest, AnExitedThreadGivesTheEpochsLastSample) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 2);
  proc_.RemoveThread(10, 12);
  const auto epoch = vm.StartEpoch(1, 1, 4);
  sampler_.Add(epoch.get());
  const auto all = Tick(0);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, Handover::Kind::kSample);
  EXPECT_TRUE(all[0].last);
  EXPECT_TRUE(all[0].sample->vcpus[0].has_scheduler_times);
  EXPECT_FALSE(all[0].sample->vcpus[1].has_scheduler_times);
  EXPECT_EQ(all[0].sample->vcpus[1].state, core::ThreadState::kExited);
  EXPECT_TRUE(Tick(1).empty());
}

// Swap-in, network storage, postcopy: it wants to run, so it is not blocked as a halted vCPU is.
TEST_F(SamplerTest, UninterruptibleSleepIsAStateOfItsOwn) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 1);
  vm.SetState(0, 'D');
  const auto epoch = vm.StartEpoch(1, 1, 4);
  sampler_.Add(epoch.get());
  Tick(0);
  EXPECT_EQ(Tick(1).at(0).sample->vcpus[0].state, core::ThreadState::kIoWait);
}

// A kernel without schedstats: "0 0 0" is not a delay of 0, and the state is read all the same.
TEST_F(SamplerTest, ThreeZerosAreNoSchedulerTimes) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 2);
  vm.TurnSchedulingOff(0);
  const auto epoch = vm.StartEpoch(1, 1, 4);
  sampler_.Add(epoch.get());
  Tick(0);
  const auto all = Tick(1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_FALSE(all[0].sample->vcpus[0].has_scheduler_times);
  EXPECT_EQ(all[0].sample->vcpus[0].state, core::ThreadState::kBlocked);
  EXPECT_TRUE(all[0].sample->vcpus[1].has_scheduler_times);
}

// Without schedstat it is the state's file that shows an exit, once nothing runs.
TEST_F(SamplerTest, AnExitWithoutSchedulerTimesShowsInTheState) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 1);
  std::filesystem::remove(proc_.Path("proc/10/task/11/schedstat"));
  proc_.RemoveThread(10, 11);
  const auto epoch = vm.StartEpoch(1, 1, 4);
  sampler_.Add(epoch.get());
  EXPECT_TRUE(Tick(0).at(0).last);
}

// A kernel or user without schedstat: the thread lives, so its counters go on being sampled.
TEST_F(SamplerTest, WithoutSchedulerTimesSamplingGoesOn) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 1);
  std::filesystem::remove(proc_.Path("proc/10/task/11/schedstat"));
  const auto epoch = vm.StartEpoch(1, 1, 4);
  sampler_.Add(epoch.get());
  for (uint64_t tick = 0; tick < 3; ++tick) {
    const auto all = Tick(tick);
    ASSERT_EQ(all.size(), 1u) << tick;
    EXPECT_FALSE(all[0].last);
    EXPECT_FALSE(all[0].sample->vcpus[0].has_scheduler_times);
    EXPECT_EQ(all[0].sample->vcpus[0].state,
              tick == 0 ? core::ThreadState::kNotRead : core::ThreadState::kBlocked);
    epoch->Recycle(all[0].sample);
  }
}

TEST(SampleBytes, AreThoseOfItsVcpusAndTheirFurtherGroups) {
  core::Sample sample;
  sample.vcpus.resize(3);
  sample.further.resize(9);
  const size_t held = sizeof(sample) + std::span(sample.vcpus).size_bytes() +
                      std::span(sample.further).size_bytes();
  EXPECT_EQ(SampleBytes(3, 4), held);
}

// Of the 64 MiB one epoch takes a quarter of what is left, whole samples.
TEST(BuffersFor, AnEpochTakesAQuarterOfWhatIsLeft) {
  constexpr size_t kBytes = size_t{915} << 10;
  EXPECT_EQ(BuffersFor(absl::Milliseconds(100), kBytes, 0), 17u);
  EXPECT_EQ(BuffersFor(absl::Milliseconds(100), kBytes / 2, size_t{32} << 20), 17u);
  EXPECT_EQ(BuffersFor(absl::Milliseconds(1), size_t{1} << 20, 0), 201u);  // 200 ms at least
  EXPECT_EQ(BuffersFor(absl::Microseconds(100), SampleBytes(1, 1), 0), 2048u);
}

TEST(BuffersFor, HoldsTwoSecondsWhileTheBudgetLasts) {
  EXPECT_EQ(BuffersFor(absl::Milliseconds(100), SampleBytes(16, 1), 0), 21u);
  EXPECT_EQ(BuffersFor(absl::Milliseconds(1), SampleBytes(16, 1), 0), 2001u);
  EXPECT_EQ(BuffersFor(absl::Seconds(10), SampleBytes(16, 1), 0), 16u);
  EXPECT_EQ(BuffersFor(absl::Seconds(1), SampleBytes(1024, 8), size_t{1} << 40), 16u);
}

// 100 VMs of 16 vCPUs at 1 ms took 400 MB.
TEST(BuffersFor, ManyVmsShareTheBudget) {
  const size_t bytes = SampleBytes(16, 1);
  size_t taken = 0;
  for (int vm = 0; vm < 100; ++vm) {
    const size_t buffers = BuffersFor(absl::Milliseconds(1), bytes, taken);
    EXPECT_GE(buffers, 200u);
    taken += buffers * bytes;
  }
  EXPECT_LT(taken, size_t{112} << 20);
  RecordProperty("bytes", std::to_string(taken));
}

TEST_F(SamplerTest, MissedTicksAreHandedOver) {
  sampler_.Missed({3, 8}, 77);
  Handover handover;
  ASSERT_TRUE(sampler_.Take(handover));
  EXPECT_EQ(handover.kind, Handover::Kind::kTickMissed);
  EXPECT_EQ(handover.epoch, nullptr);
  EXPECT_EQ(handover.ticks.first, 3u);
  EXPECT_EQ(handover.ticks.last, 8u);
  EXPECT_EQ(handover.mono_ns, 77);
}

}  // namespace
}  // namespace vcpulse::sampler

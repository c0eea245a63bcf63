// What a recording says of its VMs to people and in the timeline, each once; and what it tells its
// caller to look at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "monitor/recorder/recording.h"
#include "tests/unit/monitor/recorder/recording_fixture.h"

namespace vcpulse::recorder {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RecordingSaid : public RecordingFixture {
 protected:
  // The details of all records of this kind.
  std::vector<std::string> DetailsOf(v1::LifeCycle::Kind kind) const {
    std::vector<std::string> details;
    for (const auto& record : writer_.records) {
      if (record.has_life_cycle() && record.life_cycle().kind() == kind) {
        details.push_back(record.life_cycle().detail());
      }
    }
    return details;
  }

  // The same VM with one vCPU less, as after an unplug.
  kvm::Vm Smaller() const {
    kvm::Vm smaller = web_.vm();
    smaller.vcpus.pop_back();
    return smaller;
  }
};

TEST_F(RecordingSaid, WhichVcpusCameAndWent) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  ASSERT_TRUE(recording_.Track(Smaller()).ok());
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  kvm::Vm replaced = web_.vm();
  replaced.vcpus[0].start_time_ticks += 5;  // another thread of the same TID
  proc_.AddThread(10, 11, "CPU 0/KVM", 1005);
  ASSERT_TRUE(recording_.Track(replaced).ok());
  EXPECT_THAT(DetailsOf(v1::LifeCycle::KIND_VCPUS_CHANGED),
              ElementsAre("lost vCPU 1 (TID 12)", "found vCPU 1 (TID 12)",
                          "lost vCPU 0 (TID 11), found vCPU 0 (TID 11)"));
}

TEST_F(RecordingSaid, DegradedIsSaidOnceOfAVm) {
  perf_.guest_only_error = ENOENT;
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  EXPECT_THAT(recording_.TakeNotices(), ElementsAre(HasSubstr("no hardware counters (degraded)")));
  ASSERT_TRUE(recording_.Track(Smaller()).ok());
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  ASSERT_THAT(writer_.VcpuSets(), SizeIs(3));
  EXPECT_EQ(writer_.VcpuSets()[2].event_set(), "degraded");
  EXPECT_THAT(recording_.TakeNotices(), IsEmpty());
}

// Of events that were asked for by name; those of a set are in the report.
TEST_F(RecordingSaid, AbsentEventsAreNamedOnceWhereTheyWereAskedFor) {
  const kvm::Event cycles{.name = "cycles", .config = PERF_COUNT_HW_CPU_CYCLES};
  const kvm::Event misses{.name = "cache-misses", .config = PERF_COUNT_HW_CACHE_MISSES};
  perf_.refused[{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}] = ENOENT;
  perf_.refused[{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS}] = ENOENT;
  const auto notices = [this](const kvm::OpenOptions& open) {
    Recording recording({.root = proc_.root(),
                         .open = open,
                         .residency = {{.max_hz = 1e9}},
                         .now_ns = fakes::FakeClock::Now},
                        perf_, writer_);
    EXPECT_TRUE(recording.Track(web_.vm()).ok());
    std::vector<std::string> first = recording.TakeNotices();
    EXPECT_TRUE(recording.Track(Smaller()).ok());
    EXPECT_TRUE(recording.Track(web_.vm()).ok());
    EXPECT_THAT(recording.TakeNotices(), IsEmpty());
    return first;
  };
  kvm::OpenOptions by_name;
  by_name.wanted.events.groups = {{cycles}, {misses}};
  EXPECT_THAT(notices(by_name), ElementsAre(HasSubstr("not counted of --events: cache-misses")));
  EXPECT_THAT(notices({.wanted = {.set = kvm::EventSet::kMin}}), IsEmpty());
}

TEST_F(RecordingSaid, WhatNeverCountsIsSaidOnceAfter20ms) {
  constexpr uint64_t kRan = 4'999'999;
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  Tick();
  web_.Ran(0, kRan, 0, 0);
  Tick();
  EXPECT_THAT(recording_.TakeNotices(), IsEmpty());
  web_.Ran(0, core::kEnoughToCount_ns - kRan, 0, 0);
  Tick();
  EXPECT_THAT(recording_.TakeNotices(), ElementsAre(HasSubstr("vCPU 0 run and count no guest")));
  for (int i = 0; i < 3; ++i) {
    web_.Ran(0, 50'000'000, 0, 0);
    Tick();
  }
  EXPECT_THAT(recording_.TakeNotices(), IsEmpty());
}

TEST_F(RecordingSaid, WhereThereIsNoSmallerSetIsSaidOnce) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  for (int i = 0; i < 30; ++i) {
    for (int vcpu = 0; vcpu < 2; ++vcpu) web_.group(vcpu).time_enabled_ns += 100'000'000;
    Tick();
  }
  EXPECT_THAT(DetailsOf(v1::LifeCycle::KIND_SET_REDUCED), SizeIs(2));  // to cycles; no further
}

// The tick thread is to be woken for an epoch that begins and for one that ends.
TEST_F(RecordingSaid, TheSamplersNews) {
  EXPECT_FALSE(recording_.TakeSamplerNews());
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  EXPECT_TRUE(recording_.TakeSamplerNews());
  EXPECT_FALSE(recording_.TakeSamplerNews());
  recording_.Ended(KeyOf(web_.vm()), "it ended");
  EXPECT_TRUE(recording_.TakeSamplerNews());
}

// A thread that has exited makes its VM worth a look; another error of a read does not.
TEST_F(RecordingSaid, AFailedReadMakesAVmSuspectWhereItsThreadIsGone) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  web_.group(0).read_error = EIO;
  Tick();
  EXPECT_THAT(recording_.TakeSuspects(), IsEmpty());
  web_.group(0).read_error = ESRCH;
  Tick();
  EXPECT_THAT(recording_.TakeSuspects(), ElementsAre(KeyOf(web_.vm())));
}

// 64 MiB are for all VMs together: where the first ones took much, a later one has less than 2 s.
TEST(RecordingMemory, IsSharedByTheVms) {
  fakes::FakePerfEvents perf;
  fakes::ProcDir proc;
  fakes::CollectingWriter writer;
  Recording recording({.root = proc.root(),
                       .interval = absl::Milliseconds(1),
                       .open = {.wanted = {.set = kvm::EventSet::kMin}},
                       .residency = {{.max_hz = 1e9}},
                       .statistics = false,
                       .now_ns = fakes::FakeClock::Now},
                      perf, writer);
  constexpr int kVms = 8;
  constexpr int kVcpus = 64;
  for (int i = 0; i < kVms; ++i) {
    const fakes::SampledVm vm(perf, proc, std::to_string(i), 1000 * (i + 1), 1000 * (i + 1) + 1,
                              kVcpus);
    ASSERT_TRUE(recording.Track(vm.vm()).ok());
  }
  recording.sampler().TakeCommands();
  const size_t first =
      sampler::BuffersFor(absl::Milliseconds(1), sampler::SampleBytes(kVcpus, 1), 0);
  constexpr uint64_t kTicks = 300;
  ASSERT_GT(first, kTicks);
  for (uint64_t tick = 0; tick < kTicks; ++tick) {
    const int64_t now_ns = fakes::FakeClock::Now();
    recording.sampler().Tick(tick, now_ns, now_ns);
  }
  recording.Drain();
  std::map<uint32_t, uint64_t> ticks;
  for (const auto& tick : writer.ticks) ++ticks[tick.vm];
  EXPECT_EQ(ticks[1], kTicks);
  EXPECT_GE(ticks[kVms], 200u);
  EXPECT_LT(ticks[kVms], kTicks);
}

}  // namespace
}  // namespace vcpulse::recorder

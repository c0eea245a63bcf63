#include "monitor/recorder/statistics_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/monitor/recorder/recording_fixture.h"

namespace vcpulse::recorder {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMillisecond_ns = 1'000'000;

core::Verdict In(core::Band band) { return {.band = band}; }

TEST(StatisticsWatch, IsDueAtOnceThenEachSecondAndWhereABandChanges) {
  StatisticsWatch watch("/nowhere", {}, "6.12", fakes::FakeClock::Now);
  const std::vector<core::Verdict> halted = {In(core::Band::kHalted)};
  const std::vector<core::Verdict> busy = {In(core::Band::kProductive)};
  EXPECT_TRUE(watch.IsDue(0, halted));
  EXPECT_FALSE(watch.IsDue(899 * kMillisecond_ns, halted));
  EXPECT_TRUE(watch.IsDue(900 * kMillisecond_ns, halted));
  EXPECT_FALSE(
      watch.IsDue(1100 * kMillisecond_ns, busy));  // a change, but within a quarter of a second
  EXPECT_TRUE(watch.IsDue(1150 * kMillisecond_ns, busy));
  EXPECT_FALSE(watch.IsDue(1500 * kMillisecond_ns, busy));
}

class RecordedStatistics : public RecordingFixture {
 protected:
  void SetSched(int vcpu, int migrations) {
    proc_.Write("proc/10/task/" + std::to_string(web_.tid(vcpu)) + "/sched",
                "x (1, #threads: 1)\nse.sum_exec_runtime : 1.000000\nse.nr_migrations : " +
                    std::to_string(migrations) +
                    "\nnr_voluntary_switches : 5\nnr_involuntary_switches : 6\n");
  }

  std::vector<v1::Statistics> Read() const {
    std::vector<v1::Statistics> all;
    for (const auto& record : writer_.records) {
      if (record.has_statistics()) all.push_back(record.statistics());
    }
    return all;
  }
};

TEST_F(RecordedStatistics, AreOfTheEpochsVcpusInOrder) {
  for (int i = 0; i < 2; ++i) SetSched(i, 3 + i);
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  EXPECT_THAT(Read(), IsEmpty());
  Tick();
  ASSERT_THAT(Read(), SizeIs(1));
  const v1::Statistics first = Read()[0];
  EXPECT_EQ(first.vm(), 1u);
  EXPECT_EQ(first.epoch(), 1u);
  EXPECT_GT(first.mono_ns(), 0);
  EXPECT_THAT(first.kvm_missing(), testing::HasSubstr("no descriptor of KVM's statistics"));
  ASSERT_EQ(first.sources_size(), 1);
  EXPECT_EQ(first.sources(0).source(), "scheduler");
  EXPECT_THAT(first.sources(0).names(),
              ElementsAre("migrations", "voluntary_switches", "involuntary_switches", "run_ns"));
  ASSERT_EQ(first.sources(0).vcpus_size(), 2);
  EXPECT_THAT(first.sources(0).vcpus(1).values(), ElementsAre(4, 5, 6, 1'000'000));
  EXPECT_TRUE(first.sources(0).vcpus(1).has_cpu());
  EXPECT_GT(first.sources(0).vcpus(1).mono_ns(), 0);
  SetSched(1, 40);
  for (int i = 0; i < 10; ++i) Tick();
  ASSERT_GE(Read().size(), 2u);
  EXPECT_EQ(Read().back().sources(0).vcpus(1).values(0), 40u);
}

// A set in which a vCPU could not be opened has no column for it, and no reading.
TEST_F(RecordedStatistics, LeaveOutWhatIsNotCounted) {
  for (int i = 0; i < 2; ++i) SetSched(i, 3 + i);
  perf_.refused_threads[web_.tid(0)] = ESRCH;
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  Tick();
  ASSERT_THAT(Read(), SizeIs(1));
  ASSERT_EQ(Read()[0].sources(0).vcpus_size(), 1);
  EXPECT_EQ(Read()[0].sources(0).vcpus(0).values(0), 4u);
}

TEST_F(RecordedStatistics, AreNotReadWhereThatIsAskedFor) {
  for (int i = 0; i < 2; ++i) SetSched(i, 3 + i);
  Recording without({.root = proc_.root(),
                     .open = {.wanted = {.set = kvm::EventSet::kMin}},
                     .residency = {{.max_hz = 1e9}},
                     .statistics = false,
                     .now_ns = fakes::FakeClock::Now},
                    perf_, writer_);
  ASSERT_TRUE(without.Track(web_.vm()).ok());
  without.sampler().TakeCommands();
  without.sampler().Tick(0, 0, fakes::FakeClock::now_ns);
  without.Drain();
  EXPECT_THAT(writer_.ticks, SizeIs(1));
  EXPECT_THAT(Read(), IsEmpty());
}

}  // namespace
}  // namespace vcpulse::recorder

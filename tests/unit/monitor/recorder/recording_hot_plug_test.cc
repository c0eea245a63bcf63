// vCPUs that come while a VM is recorded, and cannot be opened, or not yet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>

#include "monitor/recorder/recording.h"
#include "tests/fakes/few_descriptors.h"
#include "tests/unit/monitor/recorder/recording_fixture.h"

namespace vcpulse::recorder {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two events, schedstat and stat.
constexpr rlim_t kDescriptorsOfVcpu = 4;

class HotPlug : public RecordingFixture {
 protected:
  HotPlug() {
    changed_.vcpus.push_back({.index = 1, .tid = 29, .start_time_ticks = 1000});
    proc_.AddThread(20, 29, "CPU 1/KVM", 1000);
    EXPECT_TRUE(recording_.Track(db_.vm()).ok());
    Tick();
  }

  fakes::SampledVm db_{perf_, proc_, "db", 20, 21, 1};
  kvm::Vm changed_ = db_.vm();
};

// The new epoch needs the descriptors of the one before: that one is closed first.
TEST_F(HotPlug, ShortOfDescriptorsTheEpochBeforeIsClosedFirst) {
  const fakes::FewDescriptors few(kvm::kSpareDescriptors + kDescriptorsOfVcpu + 1);
  ASSERT_TRUE(recording_.Track(changed_).ok());
  Tick();
  Tick();
  const auto sets = writer_.VcpuSets();
  ASSERT_THAT(sets, SizeIs(3));
  EXPECT_THAT(sets[1].vcpus(), IsEmpty());
  ASSERT_THAT(sets[1].unopened_vcpus(), SizeIs(2));
  EXPECT_THAT(sets[1].unopened_vcpus(0).reason(), HasSubstr("were closed first"));
  EXPECT_EQ(sets[1].unopened_vcpus(0).error(), 0) << "it was not tried";
  EXPECT_THAT(sets[2].vcpus(), SizeIs(2));
  EXPECT_THAT(sets[2].unopened_vcpus(), IsEmpty());
  EXPECT_EQ(writer_.ticks.back().epoch, 3u);
  ASSERT_THAT(writer_.Gaps(), SizeIs(1));  // the tick between
  EXPECT_EQ(writer_.Gaps()[0].reason(), v1::Gap::REASON_NOT_OPENED);
  EXPECT_EQ(writer_.Gaps()[0].epoch(), 2u);
  EXPECT_EQ(writer_.Gaps()[0].first_tick(), 1u);
  EXPECT_EQ(writer_.Gaps()[0].last_tick(), 1u);
  EXPECT_THAT(recording_.TakeNotices(), IsEmpty());
}

// Still short: as many vCPUs as can be, a set that names the others, and more tries.
TEST_F(HotPlug, AVcpuThatCannotBeOpenedIsListedAndTriedAgain) {
  {
    const fakes::FewDescriptors few(kvm::kSpareDescriptors + 1);
    ASSERT_TRUE(recording_.Track(changed_).ok());
    Tick();
    Tick();
    ASSERT_THAT(writer_.VcpuSets(), SizeIs(3));
    const v1::VcpuSet set = writer_.VcpuSets()[2];
    ASSERT_THAT(set.vcpus(), SizeIs(1));
    EXPECT_EQ(set.vcpus(0).index(), 0u);
    ASSERT_THAT(set.unopened_vcpus(), SizeIs(1));
    EXPECT_EQ(set.unopened_vcpus(0).index(), 1u);
    EXPECT_EQ(set.unopened_vcpus(0).error(), EMFILE);
    EXPECT_THAT(set.unopened_vcpus(0).reason(), HasSubstr("too many open descriptors"));
    EXPECT_THAT(recording_.TakeNotices(), ElementsAre(HasSubstr("1 of 2 vCPUs are not counted")));

    ASSERT_TRUE(recording_.Track(changed_).ok());  // tried, and nothing changes
    Tick();
    EXPECT_THAT(writer_.VcpuSets(), SizeIs(3));
    EXPECT_EQ(writer_.ticks.back().sample.vcpus.size(), 1u);
  }
  ASSERT_TRUE(recording_.Track(changed_).ok());
  Tick();
  ASSERT_THAT(writer_.VcpuSets(), SizeIs(4));
  EXPECT_THAT(writer_.VcpuSets()[3].vcpus(), SizeIs(2));
  EXPECT_THAT(writer_.VcpuSets()[3].unopened_vcpus(), IsEmpty());
  EXPECT_THAT(recording_.TakeNotices(), ElementsAre(HasSubstr("all vCPUs are counted again")));
}

// Of those that are not counted one can be: that is enough for another set.
TEST_F(HotPlug, EachVcpuThatCanBeOpenedAgainIs) {
  changed_.vcpus.push_back({.index = 2, .tid = 30, .start_time_ticks = 1000});
  proc_.AddThread(20, 30, "CPU 2/KVM", 1000);
  perf_.refused_threads = {{29, EMFILE}, {30, EMFILE}};
  ASSERT_TRUE(recording_.Track(changed_).ok());
  Tick();
  Tick();
  EXPECT_THAT(writer_.VcpuSets().back().vcpus(), SizeIs(1));
  perf_.refused_threads.erase(30);
  ASSERT_TRUE(recording_.Track(changed_).ok());
  Tick();
  Tick();
  EXPECT_THAT(writer_.VcpuSets().back().vcpus(), SizeIs(2));
  EXPECT_THAT(writer_.VcpuSets().back().unopened_vcpus(), SizeIs(1));
}

// A vCPU that could be opened without hardware counters alone does not cost the others theirs.
TEST_F(HotPlug, CountersAreNotGivenUpForOneMoreVcpu) {
  perf_.refused_threads[29] = EACCES;
  ASSERT_TRUE(recording_.Track(changed_).ok());
  Tick();
  ASSERT_THAT(writer_.VcpuSets(), SizeIs(2));
  perf_.refused_threads.clear();
  perf_.guest_only_error = ENOENT;
  ASSERT_TRUE(recording_.Track(changed_).ok());
  Tick();
  EXPECT_THAT(writer_.VcpuSets(), SizeIs(2));
}

// The successor of an epoch that ended cannot be opened at all: a set without vCPUs, and gaps.
TEST_F(HotPlug, TicksInWhichNoVcpuIsOpenAreGaps) {
  perf_.refused_threads = {{db_.tid(0), EMFILE}, {29, EMFILE}};
  ASSERT_TRUE(recording_.Track(changed_).ok());
  for (int i = 0; i < 15; ++i) {
    Tick();
    ASSERT_TRUE(recording_.Track(changed_).ok());
  }
  EXPECT_THAT(writer_.ticks, SizeIs(1));
  perf_.refused_threads.clear();
  ASSERT_TRUE(recording_.Track(changed_).ok());
  Tick();
  const auto sets = writer_.VcpuSets();
  ASSERT_THAT(sets, SizeIs(3));  // no new one for each failed try
  EXPECT_THAT(sets[1].vcpus(), IsEmpty());
  EXPECT_THAT(sets[1].unopened_vcpus(), SizeIs(2));
  EXPECT_THAT(sets[2].vcpus(), SizeIs(2));
  uint64_t next = 1;
  for (const v1::Gap& gap : writer_.Gaps()) {
    EXPECT_EQ(gap.reason(), v1::Gap::REASON_NOT_OPENED);
    EXPECT_EQ(gap.vm(), 1u);
    EXPECT_EQ(gap.epoch(), 2u);
    EXPECT_EQ(gap.first_tick(), next);
    next = gap.last_tick() + 1;
  }
  EXPECT_EQ(next, writer_.ticks.back().sample.tick);
  ASSERT_THAT(writer_.Gaps(), SizeIs(2));  // one per second
  EXPECT_EQ(writer_.Gaps()[0].last_tick(), 10u);
}

// A recording that ends while it waits for the descriptors of an epoch opens nothing more.
TEST_F(HotPlug, TheEndDoesNotWaitForDescriptors) {
  perf_.refused_threads[29] = EMFILE;
  ASSERT_TRUE(recording_.Track(changed_).ok());
  recording_.RetireAll();
  Tick();
  EXPECT_TRUE(recording_.idle());
}

// What is refused for another reason is no ground to stop what runs.
TEST_F(HotPlug, AVcpuWithoutPermissionIsListedToo) {
  perf_.refused_threads[29] = EACCES;
  ASSERT_TRUE(recording_.Track(changed_).ok());
  Tick();
  ASSERT_THAT(writer_.VcpuSets(), SizeIs(2));
  EXPECT_THAT(writer_.VcpuSets()[1].vcpus(), SizeIs(1));
  EXPECT_EQ(writer_.VcpuSets()[1].unopened_vcpus(0).error(), EACCES);
  EXPECT_THAT(writer_.Gaps(), IsEmpty());
}

// A new VM is all or nothing: it is skipped, and its caller tries again.
TEST_F(HotPlug, ANewVmThatCannotBeOpenedIsAnError) {
  perf_.refused_threads[web_.tid(1)] = EMFILE;
  EXPECT_EQ(recording_.Track(web_.vm()).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(recording_.vms(), SizeIs(1));
}

}  // namespace
}  // namespace vcpulse::recorder

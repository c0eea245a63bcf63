#include "kvm/counters/counter_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

#include "kvm/events/event_sets.h"
#include "tests/fakes/fake_perf_events.h"

namespace vcpulse::kvm {
namespace {

constexpr pid_t kTid = 77;

// Rule 1 of the design, attribute by attribute.
TEST(CounterGroup, AttributesAreThoseOfTheRule) {
  fakes::FakePerfEvents perf;
  std::vector<RefusedEvent> refused;
  ASSERT_TRUE(CounterGroup::Open(perf, kTid, EventsOf(EventSet::kFull), refused).ok());
  ASSERT_EQ(perf.opened.size(), 6u);
  for (size_t i = 0; i < perf.opened.size(); ++i) {
    const perf_event_attr& attr = perf.opened[i];
    EXPECT_EQ(attr.read_format, PERF_FORMAT_GROUP | PERF_FORMAT_ID |
                                    PERF_FORMAT_TOTAL_TIME_ENABLED |
                                    PERF_FORMAT_TOTAL_TIME_RUNNING);
    EXPECT_EQ(attr.exclude_host, 1u);
    EXPECT_EQ(attr.exclude_guest, 0u);
    EXPECT_EQ(attr.exclude_kernel, 0u);  // would drop guest ring 0
    EXPECT_EQ(attr.inherit, 0u);
    EXPECT_EQ(attr.pinned, 0u);
    EXPECT_EQ(attr.precise_ip, 0u);
    EXPECT_EQ(attr.disabled, i == 0 ? 1u : 0u);
  }
  EXPECT_EQ(perf.opened[0].config, static_cast<uint64_t>(PERF_COUNT_HW_CPU_CYCLES));
}

TEST(CounterGroup, CountsNothingBeforeEnable) {
  fakes::FakePerfEvents perf;
  std::vector<RefusedEvent> refused;
  auto group = CounterGroup::Open(perf, kTid, EventsOf(EventSet::kMin), refused);
  EXPECT_FALSE(perf.groups.at(kTid).enabled);
  EXPECT_EQ(group.value.Enable(), 0);
  EXPECT_TRUE(perf.groups.at(kTid).enabled);
}

// The fake returns members in reverse order.
TEST(CounterGroup, OneReadGivesEveryMemberInItsSlot) {
  fakes::FakePerfEvents perf;
  std::vector<RefusedEvent> refused;
  auto group = CounterGroup::Open(perf, kTid, EventsOf(EventSet::kCore), refused);
  auto& counts = perf.groups[kTid].counts;
  counts[PERF_COUNT_HW_CPU_CYCLES] = 1;
  counts[PERF_COUNT_HW_INSTRUCTIONS] = 2;
  counts[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = 3;
  counts[PERF_COUNT_HW_BRANCH_MISSES] = 4;
  counts[PERF_COUNT_HW_CACHE_MISSES] = 5;
  const auto values = group.value.Read();
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values.value.counts, (std::array<uint64_t, 8>{1, 2, 3, 4, 5}));
  EXPECT_EQ(perf.groups[kTid].reads, 1);
}

TEST(CounterGroup, ARefusedSiblingIsLeftOutAlone) {
  fakes::FakePerfEvents perf;
  perf.refused[{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS}] = ENOENT;
  std::vector<RefusedEvent> refused;
  auto group = CounterGroup::Open(perf, kTid, EventsOf(EventSet::kCore), refused);
  ASSERT_TRUE(group.ok());
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].event.name, "instructions");
  EXPECT_EQ(refused[0].error, ENOENT);
  ASSERT_EQ(group.value.events().size(), 4u);
  EXPECT_EQ(group.value.events()[1].name, "branches");
}

TEST(CounterGroup, ARefusedLeaderIsTheError) {
  fakes::FakePerfEvents perf;
  perf.refused[{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES}] = EACCES;
  std::vector<RefusedEvent> refused;
  EXPECT_EQ(CounterGroup::Open(perf, kTid, EventsOf(EventSet::kMin), refused).error, EACCES);
}

TEST(CounterGroup, AFailedReadGivesItsErrno) {
  fakes::FakePerfEvents perf;
  std::vector<RefusedEvent> refused;
  auto group = CounterGroup::Open(perf, kTid, EventsOf(EventSet::kMin), refused);
  perf.groups[kTid].read_error = EBADF;
  EXPECT_EQ(group.value.Read().error, EBADF);
}

// The kernel itself: a software group of this thread is opened, enabled and read for real.
TEST(CounterGroup, WorksWithTheKernel) {
  KernelPerfEvents perf;
  std::vector<RefusedEvent> refused;
  auto group = CounterGroup::Open(perf, 0, EventsOf(EventSet::kDegraded), refused);
  if (group.error == EACCES || group.error == EPERM) {
    GTEST_SKIP() << "this user may not open perf events (kernel.perf_event_paranoid)";
  }
  ASSERT_EQ(group.error, 0);
  ASSERT_EQ(group.value.Enable(), 0);
  const auto first = group.value.Read();
  ASSERT_TRUE(first.ok());
  std::atomic<int> work = 0;
  for (int i = 0; i < 1'000'000; ++i) work += i;
  const auto second = group.value.Read();
  ASSERT_TRUE(second.ok());
  EXPECT_GT(second.value.time_enabled_ns, first.value.time_enabled_ns);
  EXPECT_GT(second.value.counts[0], first.value.counts[0]);
}

}  // namespace
}  // namespace vcpulse::kvm

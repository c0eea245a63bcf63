#include "kvm/counters/counter_group.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <vector>

#include "kvm/counters/read_format.h"
#include "kvm/events/event_sets.h"
#include "kvm/host.h"
#include "tests/fakes/fake_perf_events.h"

namespace vcpulse::kvm {
namespace {

using Words = std::vector<uint64_t>;

constexpr pid_t kTid = 77;

// Rule 1 of the design, attribute by attribute.
TEST(CounterGroup, AttributesAreThoseOfTheRule) {
  fakes::FakePerfEvents perf;
  std::vector<RefusedEvent> refused;
  ASSERT_TRUE(CounterGroup::Open(perf, kTid, EventsOf(EventSet::kFull), refused).ok());
  ASSERT_EQ(perf.opened.size(), 7u);
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
  counts[PERF_COUNT_HW_CACHE_RESULT_MISS << 16] = 5;  // of loads, in the L1D
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

// nr, enabled, running, then value and id of each.
const Words kThree = {3, 1000, 900, 11, 501, 22, 502, 33, 503};

TEST(ParseGroupRead, FindsMembersByIdNotByPosition) {
  const std::array<uint64_t, 3> ids = {503, 501, 502};
  const auto values = ParseGroupRead(kThree, ids);
  ASSERT_TRUE(values.has_value());
  EXPECT_EQ(values->time_enabled_ns, 1000u);
  EXPECT_EQ(values->time_running_ns, 900u);
  EXPECT_EQ(values->counts, (std::array<uint64_t, 8>{33, 11, 22}));
}

TEST(ParseGroupRead, AMemberThatIsNotThereIsAnError) {
  const std::array<uint64_t, 2> ids = {501, 999};
  EXPECT_EQ(ParseGroupRead(kThree, ids), std::nullopt);
}

// A value that happens to equal an id must not be taken for one.
TEST(ParseGroupRead, ValuesAreNotTakenForIds) {
  const Words words = {2, 1, 1, 502, 501, 7, 502};
  const std::array<uint64_t, 1> ids = {502};
  EXPECT_EQ(ParseGroupRead(words, ids)->counts[0], 7u);
}

TEST(ParseGroupRead, EveryShorterReadIsRefused) {
  const std::array<uint64_t, 3> ids = {501, 502, 503};
  for (size_t size = 0; size < kThree.size(); ++size) {
    EXPECT_EQ(ParseGroupRead(std::span(kThree).first(size), ids), std::nullopt) << size;
  }
  EXPECT_TRUE(ParseGroupRead(kThree, ids).has_value());
}

TEST(ParseGroupRead, AnAbsurdCountIsRefused) {
  Words words = kThree;
  words[0] = ~uint64_t{0};
  const std::array<uint64_t, 1> ids = {501};
  EXPECT_EQ(ParseGroupRead(words, ids), std::nullopt);
  words[0] = uint64_t{1} << 63;  // twice that wraps to 0
  EXPECT_EQ(ParseGroupRead(words, ids), std::nullopt);
}

TEST(ParseGroupRead, MoreIdsThanSlotsAreRefused) {
  const std::array<uint64_t, 9> ids = {501, 501, 501, 501, 501, 501, 501, 501, 501};
  EXPECT_EQ(ParseGroupRead(kThree, ids), std::nullopt);
}

// A virtual PMU may open any raw event and count nothing: its zero is no sign of a thread that does
// not pause.
const Event kProbedPause = {
    .name = "misc_retired.pause_inst", .type = PERF_TYPE_RAW, .config = 0x40cc};

TEST(PauseProbe, BelievesAnEventThatCounts) {
  fakes::FakePerfEvents perf;
  perf.groups[0].time_running_ns = 5'000'000;
  perf.groups[0].counts[kProbedPause.config] = 40'000;
  EXPECT_EQ(WhyPauseIsNotBelieved(perf, kProbedPause), "");
  EXPECT_EQ(perf.opened.size(), 1u);
  EXPECT_TRUE(perf.groups[0].enabled);
}

TEST(PauseProbe, DistrustsOneThatStaysZero) {
  fakes::FakePerfEvents perf;
  perf.groups[0].time_running_ns = 5'000'000;
  EXPECT_NE(WhyPauseIsNotBelieved(perf, kProbedPause), "");
}

// Opening says more of these: the errno of the event, or another set.
TEST(PauseProbe, SaysNothingOfWhatDoesNotOpenOrRun) {
  fakes::FakePerfEvents perf;
  EXPECT_EQ(WhyPauseIsNotBelieved(perf, kProbedPause), "");  // was never on the PMU
  perf.refused[{PERF_TYPE_RAW, kProbedPause.config}] = ENOENT;
  EXPECT_EQ(WhyPauseIsNotBelieved(perf, kProbedPause), "");
}

}  // namespace

}  // namespace vcpulse::kvm

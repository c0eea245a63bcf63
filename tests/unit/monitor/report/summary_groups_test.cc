// Reports of recordings with several groups per vCPU: rotating ones (--multiplex) and those of a
// hybrid host's core PMUs.
#include <gmock/gmock.h>

#include "boost/json.hpp"
#include "gtest/gtest.h"
#include "monitor/report/json_report.h"
#include "monitor/report/summary.h"
#include "monitor/report/text_report.h"
#include "tests/unit/fixtures/hand_made_recording.h"

namespace vcpulse::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

core::GroupSample Saw(uint64_t enabled_ns, uint64_t running_ns, std::vector<uint64_t> counts) {
  core::GroupSample group{.time_enabled_ns = enabled_ns, .time_running_ns = running_ns};
  std::copy(counts.begin(), counts.end(), group.counts.begin());
  return group;
}

// The main group ran all the time, the other one for a quarter of it.
void RecordRotating(HandMadeRecording& recording) {
  recording.Begin();
  v1::VcpuSet set = HandMadeRecording::Set(1, 1, {2001});
  set.set_event_set("custom");
  v1::EventGroup& group = *set.add_further_groups();
  group.add_events("branches");
  group.add_events("page-faults");
  set.add_host_side_events("page-faults");
  ASSERT_TRUE(recording.Add(set).ok());
  recording.First(1, 1, 0, 1, 1);
  for (uint64_t tick = 1; tick <= 4; ++tick) {
    Did did = Busy(50'000'000, kSpinningLow);
    did.further = {Saw(100'000'000, 25'000'000, {1000, 3})};
    recording.Tick(1, 1, tick, {did});
  }
}

TEST(SummaryOfGroups, EachGroupIsScaledOnItsOwn) {
  HandMadeRecording recording;
  RecordRotating(recording);
  const VcpuSummary& vcpu = recording.summary.vms().at(1).vcpus.at(0);
  EXPECT_FALSE(vcpu.FindEvent("cycles")->IsEstimate());
  EXPECT_EQ(vcpu.FindEvent("cycles")->Scaled(), 400e6);
  const EventTotal* branches = vcpu.FindEvent("branches");
  ASSERT_NE(branches, nullptr);
  EXPECT_TRUE(branches->IsEstimate());
  EXPECT_EQ(branches->Raw(), 4000u);
  EXPECT_DOUBLE_EQ(*branches->Scaled(), 16000);
  EXPECT_DOUBLE_EQ(*branches->RunningShare(), 0.25);
}

TEST(SummaryOfGroups, TheTextNamesEstimatesAndHostSideEvents) {
  HandMadeRecording recording;
  RecordRotating(recording);
  const std::string text = RenderText(WholeReport(recording.summary), {});
  EXPECT_THAT(
      text, HasSubstr("cycles 400M, instructions 200M, branches ~16.0k (estimate, counted 25% of"));
  EXPECT_THAT(text, HasSubstr("(host-side)"));
  HandMadeRecording plain;
  plain.Begin();
  ASSERT_TRUE(plain.Add(HandMadeRecording::Set(1, 1, {2001})).ok());
  EXPECT_THAT(RenderText(WholeReport(plain.summary), {}), Not(HasSubstr("events, vCPU")));
}

TEST(SummaryOfGroups, TheJsonNamesEstimates) {
  HandMadeRecording recording;
  RecordRotating(recording);
  const auto json = boost::json::parse(RenderJson(WholeReport(recording.summary)));
  const auto& vcpu = json.at_pointer("/vms/0/vcpus/0");
  EXPECT_EQ(vcpu.at("estimated_events"), (boost::json::array{"branches", "page-faults"}));
  EXPECT_EQ(vcpu.at("estimated"), false);
  EXPECT_EQ(vcpu.at_pointer("/counted_share/branches"), 0.25);
  EXPECT_EQ(vcpu.at_pointer("/counts/branches"), 4000);
  const auto& epoch = json.at_pointer("/vms/0/epochs/0");
  EXPECT_EQ(epoch.at_pointer("/further_groups/0/events"),
            (boost::json::array{"branches", "page-faults"}));
  EXPECT_EQ(epoch.at("host_side_events"), (boost::json::array{"page-faults"}));
}

// A thread that spent 60 ms of each 100 on fast cores and 40 on slow ones, busy all the time: raw
// sums, no estimate, residency 1 as each PMU is held against its own rate.
TEST(SummaryOfGroups, CorePmusOfAHybridHostAddUp) {
  HandMadeRecording recording;
  v1::Session session = HandMadeRecording::Session();
  session.add_core_pmus("cpu_core");
  session.add_core_pmus("cpu_atom");
  session.set_max_hz(4e9);
  session.add_further_max_hz(2e9);
  ASSERT_TRUE(recording.Add(session).ok());
  v1::VcpuSet set = HandMadeRecording::Set(1, 1, {2001});
  set.set_core_pmus(2);
  set.set_pmu("cpu_core");
  v1::EventGroup& atom = *set.add_further_groups();
  atom.set_pmu("cpu_atom");
  for (const char* event : {"cycles", "instructions"}) atom.add_events(event);
  ASSERT_TRUE(recording.Add(set).ok());
  recording.First(1, 1, 0, 1, 1);
  for (uint64_t tick = 1; tick <= 3; ++tick) {
    recording.Tick(1, 1, tick,
                   {{.enabled_ns = 100'000'000,
                     .running_ns = 60'000'000,
                     .counts = {240'000'000, 480'000'000},
                     .verdict = kProductiveHigh,
                     .further = {Saw(100'000'000, 40'000'000, {80'000'000, 80'000'000})}}});
  }
  const VcpuSummary& vcpu = recording.summary.vms().at(1).vcpus.at(0);
  EXPECT_EQ(vcpu.FindEvent("cycles")->Raw(), 960'000'000u);
  EXPECT_FALSE(vcpu.FindEvent("cycles")->IsEstimate());
  EXPECT_EQ(vcpu.FindEvent("cycles")->interval_ns, vcpu.totals.MeasuredNs());
  EXPECT_DOUBLE_EQ(*vcpu.ipc.Mean(), 1.75);
  EXPECT_DOUBLE_EQ(*vcpu.Value(metric::Metric::kResidency), 1.0);
  EXPECT_DOUBLE_EQ(*vcpu.Value(metric::Metric::kRunning), 1.0);
  EXPECT_THAT(RenderText(WholeReport(recording.summary), {}),
              HasSubstr("hybrid: core PMUs cpu_core, cpu_atom"));
}

// An idle epoch with half of the PMU, then a busy one with all of it: each is scaled by its own
// share.
TEST(SummaryOfGroups, EachEpochIsScaledOnItsOwn) {
  HandMadeRecording recording;
  recording.Begin();
  for (const uint32_t epoch : {1u, 2u}) {
    ASSERT_TRUE(recording.Add(HandMadeRecording::Set(1, epoch, {2001})).ok());
    recording.First(1, epoch, 10 * epoch, 1);
    recording.Tick(1, epoch, 10 * epoch + 1,
                   {{.enabled_ns = 100'000'000,
                     .running_ns = epoch == 1 ? 50'000'000u : 100'000'000u,
                     .counts = {epoch == 1 ? 1000u : 100'000'000u, 10},
                     .verdict = kSpinningLow}});
  }
  const EventTotal* cycles = recording.summary.vms().at(1).vcpus.at(0).FindEvent("cycles");
  EXPECT_DOUBLE_EQ(*cycles->Scaled(), 2000 + 100'000'000);
  EXPECT_TRUE(cycles->IsEstimate());
}

// The first epoch's group never got the PMU: what was counted is that of the second alone, and says
// so.
TEST(SummaryOfGroups, AnEpochThatNeverRanIsNotCountedAsZero) {
  HandMadeRecording recording;
  recording.Begin();
  for (const uint32_t epoch : {1u, 2u}) {
    ASSERT_TRUE(recording.Add(HandMadeRecording::Set(1, epoch, {2001})).ok());
    recording.First(1, epoch, 10 * epoch, 1);
    recording.Tick(1, epoch, 10 * epoch + 1,
                   {{.enabled_ns = 100'000'000,
                     .running_ns = epoch == 1 ? 0u : 100'000'000u,
                     .counts = {epoch == 1 ? 0u : 70'000'000u, 10},
                     .verdict = kSpinningLow}});
  }
  const VcpuSummary& vcpu = recording.summary.vms().at(1).vcpus.at(0);
  const EventTotal* cycles = vcpu.FindEvent("cycles");
  EXPECT_DOUBLE_EQ(*cycles->Scaled(), 70'000'000);
  EXPECT_FALSE(cycles->IsEstimate());
  EXPECT_LT(cycles->CountedNs(), vcpu.totals.MeasuredNs());
  EXPECT_THAT(RenderText(WholeReport(recording.summary), {}), HasSubstr("70.0M+"));
}

// The groups of two PMUs are read a moment apart, so their times do not add up to the last digit.
TEST(SummaryOfGroups, ReadsThatLieApartMakeNoEstimate) {
  EventTotal total{.raw = 5,
                   .time_enabled_ns = 1'000'000'000,
                   .time_running_ns = 999'990'000,
                   .interval_ns = 1,
                   .on_many_pmus = true};
  EXPECT_FALSE(total.IsEstimate());
  total.time_running_ns = 990'000'000;
  EXPECT_TRUE(total.IsEstimate());
  total = {.raw = 5, .time_enabled_ns = 1000, .time_running_ns = 999, .interval_ns = 1};
  EXPECT_TRUE(total.IsEstimate());
}

// What a summary does with numbers beyond its tables and with lists without end.
const VcpuSummary& VcpuOf(const HandMadeRecording& recording, uint32_t vm, uint32_t index) {
  return recording.summary.vms().at(vm).vcpus.at(index);
}

// Numbers from a later release or a damaged file: more events than slots, unknown band and rule.
TEST(Summary, StaysWithinItsTables) {
  HandMadeRecording recording;
  recording.Begin();
  const std::vector<std::string> events = {"a", "b", "c", "d", "e", "f", "g", "h", "cycles", "j"};
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001}, events)).ok());
  recording.First(1, 1, 0, 1);
  recording.Tick(1, 1, 1,
                 {{.enabled_ns = 100'000'000,
                   .running_ns = 100'000'000,
                   .counts = {1, 2, 3, 4, 5, 6, 7, 8},
                   .verdict = {static_cast<core::Band>(200), static_cast<core::Rule>(99), false}}});
  const VcpuSummary& vcpu = VcpuOf(recording, 1, 0);
  EXPECT_EQ(vcpu.FindEvent("h")->raw, 8u);
  EXPECT_EQ(vcpu.FindEvent("cycles"), nullptr);
  EXPECT_EQ(vcpu.band_ticks[0], 1u);
}

// The VM's end is kept beside the list of changes.
TEST(Summary, KeepsLifeCycle) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  v1::LifeCycle change;
  change.set_vm(1);
  change.set_kind(v1::LifeCycle::KIND_VM_ENDED);
  change.set_mono_ns(kStart_ns + 7 * kTick_ns);
  ASSERT_TRUE(recording.Add(change).ok());
  EXPECT_EQ(recording.summary.vms().at(1).ended_mono_ns, kStart_ns + 7 * kTick_ns);
  EXPECT_EQ(recording.summary.life_cycle().size(), 1u);
  EXPECT_EQ(recording.summary.last_mono_ns(), kStart_ns + 7 * kTick_ns);
}

// Memory must not grow with the length of a recording: lists that could are cut, and say so.
TEST(Summary, CutsListsOfAVeryLongRecording) {
  HandMadeRecording recording;
  recording.Begin();
  for (uint32_t epoch = 1; epoch <= 300; ++epoch) {
    ASSERT_TRUE(recording.Add(recording.Set(1, epoch, {2000 + epoch})).ok());
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(recording.Add(v1::LifeCycle()).ok());
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(recording.Add(v1::Marker()).ok());
    v1::Gap gap;
    for (int error = 1; error <= 10; ++error) {
      gap.set_error(static_cast<int32_t>(epoch) * 10 + error);
      ASSERT_TRUE(recording.Add(gap).ok());
    }
  }
  const VmSummary& vm = recording.summary.vms().at(1);
  EXPECT_EQ(vm.epochs.size() + vm.epochs_omitted, 300u);
  EXPECT_EQ(vm.epochs.size(), 100u);
  EXPECT_TRUE(vm.epochs.contains(300));
  EXPECT_EQ(VcpuOf(recording, 1, 0).tids.size(), 16u);
  EXPECT_EQ(recording.summary.life_cycle().size() + recording.summary.life_cycle_omitted(), 1500u);
  EXPECT_EQ(recording.summary.life_cycle().size(), 500u);
  EXPECT_EQ(recording.summary.markers().size(), 1000u);
  EXPECT_EQ(recording.summary.markers_omitted(), 500u);
  EXPECT_LE(recording.summary.gaps().size(), 1001u);
  uint64_t records = 0;
  for (const auto& [key, total] : recording.summary.gaps()) records += total.records;
  EXPECT_EQ(records, 3000u);
}

}  // namespace
}  // namespace vcpulse::report

// What a summary does with numbers beyond its tables and with lists without end.
#include "gtest/gtest.h"
#include "monitor/report/summary.h"
#include "tests/unit/hand_made_recording.h"

namespace vcpulse::report {
namespace {

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

// A VM that ends mid-run closes its epoch; one that starts mid-run is picked up.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

class LifeCycles : public testing::Test {
 protected:
  void SetUp() override {
    recorded_ = Load(OutputPath("lifecycle-1", "lifecycle.vpt"));
    first_ = recorded_.NumberOf("first");
    second_ = recorded_.NumberOf("second");
    ASSERT_NE(first_, 0u);
    ASSERT_NE(second_, 0u);
  }

  // The instants at which that happened to that VM.
  std::vector<int64_t> Changes(uint32_t vm, v1::LifeCycle::Kind kind) const {
    std::vector<int64_t> instants;
    for (const v1::LifeCycle& change : recorded_.life_cycle) {
      if (change.vm() == vm && change.kind() == kind) instants.push_back(change.mono_ns());
    }
    return instants;
  }

  int64_t GapsOf(uint32_t vm) const {
    return std::ranges::count_if(recorded_.gaps,
                                 [vm](const v1::Gap& gap) { return gap.vm() == vm; });
  }

  RecordedTimeline recorded_;
  uint32_t first_ = 0;
  uint32_t second_ = 0;
};

TEST_F(LifeCycles, VmThatEndsClosesItsEpoch) {
  const RecordedVm& first = recorded_.vms.at(first_);
  const RecordedVm& second = recorded_.vms.at(second_);
  const auto ended = Changes(first_, v1::LifeCycle::KIND_VM_ENDED);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(GapsOf(first_), 0);  // its last read was a good one
  // Killed 5 s after the start or a little later, of 10 s: samples until then and none after.
  EXPECT_GE(first.IntervalsDue(), 45u);
  EXPECT_LE(first.last_sample_ns, ended.front() + kSecond);
  EXPECT_LT(first.last_sample_ns, second.last_sample_ns - 2 * kSecond);
}

TEST_F(LifeCycles, VmThatStartsMidRunIsPickedUp) {
  const RecordedVm& first = recorded_.vms.at(first_);
  const RecordedVm& second = recorded_.vms.at(second_);
  EXPECT_EQ(Changes(second_, v1::LifeCycle::KIND_VM_FOUND).size(), 1u);
  EXPECT_GT(second.first_sample_ns, first.first_sample_ns + 2 * kSecond);
  EXPECT_GE(second.IntervalsDue(), 30u);
  EXPECT_EQ(second.sets.front().vcpus_size(), 2);
  EXPECT_EQ(GapsOf(second_), 0);
  EXPECT_TRUE(Changes(second_, v1::LifeCycle::KIND_VM_ENDED).empty());
}

// Neither the start of a VM nor the end of another one costs a VM its samples.
TEST_F(LifeCycles, OthersAreNotDisturbed) {
  for (const uint32_t number : {first_, second_}) {
    const RecordedVm& vm = recorded_.vms.at(number);
    EXPECT_GE(ShareOfTicks(vm, 1,
                           [](const Interval& i) { return i.verdict.band == core::Band::kHalted; }),
              0.95);
  }
}

}  // namespace
}  // namespace vcpulse::lab

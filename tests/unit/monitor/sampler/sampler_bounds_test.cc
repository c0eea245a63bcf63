// What the sampler does where its queues and places are full.

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "tests/unit/monitor/sampler/sampler_fixture.h"

namespace vcpulse::sampler {
namespace {

using fakes::FakeClock;

// Each VM's next epoch comes before its last one goes: twice the number of VMs, and no more.
TEST_F(SamplerTest, EpochsHaveABound) {
  constexpr size_t kMost = 2 * kMaxEpochs;
  std::deque<Epoch> epochs;
  const auto add = [&] {
    Epoch& epoch = epochs.emplace_back(static_cast<uint32_t>(epochs.size()), 1, 1);
    epoch.free.push(&epoch.buffers[0]);
    return sampler_.Add(&epoch);
  };
  for (size_t i = 0; i < kMost; ++i) ASSERT_TRUE(add()) << i;
  EXPECT_FALSE(add());
  EXPECT_EQ(Tick(0).size(), kMost);

  ASSERT_TRUE(sampler_.Add(&epochs.back()));
  epochs.front().Recycle(&epochs.front().buffers[0]);
  const auto still = Tick(1);
  ASSERT_EQ(still.size(), 1u);
  EXPECT_EQ(still[0].epoch, &epochs.front());

  epochs.front().retiring = true;
  Tick(2);
  const auto room = Tick(3);
  ASSERT_EQ(room.size(), 1u);  // the others' samples were never given back
  EXPECT_EQ(room[0].epoch, &epochs.back());
}

class FullResultsTest : public SamplerTest {
 protected:
  // So many handovers stand in the queue that `room` more fit in.
  void FillBut(size_t room) {
    for (size_t i = 0; i < 16384 - room; ++i) sampler_.Missed({i, i}, 1);
  }
  std::vector<Handover> TakeAll() {
    std::vector<Handover> all;
    Handover handover;
    while (sampler_.Take(handover)) all.push_back(handover);
    return all;
  }
};

// Ticks that found the queue full are one gap from the first to the last, once there is room.
TEST_F(FullResultsTest, MissedTicksAddUpUntilThereIsRoom) {
  FillBut(0);
  sampler_.Missed({20000, 20001}, 2);
  sampler_.Missed({20002, 20003}, 3);
  EXPECT_EQ(TakeAll().size(), 16384u);
  const auto after = Tick(20004);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].kind, Handover::Kind::kTickMissed);
  EXPECT_EQ(after[0].ticks.first, 20000u);
  EXPECT_EQ(after[0].ticks.last, 20003u);
  EXPECT_TRUE(Tick(20005).empty());
}

// A place stays free for what must be said of the ticks that found none.
TEST_F(FullResultsTest, ATickTakesTheLastPlaceButOne) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 1);
  const auto epoch = vm.StartEpoch(1, 1, 4);
  sampler_.Add(epoch.get());
  sampler_.TakeCommands();
  FillBut(1);
  sampler_.Tick(5, FakeClock::now_ns, FakeClock::now_ns);
  EXPECT_EQ(TakeAll().back().kind, Handover::Kind::kTickMissed);
  const auto after = Tick(6);
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0].kind, Handover::Kind::kQueueFull);
  EXPECT_EQ(after[0].ticks.first, 5u);
  EXPECT_EQ(after[0].ticks.last, 5u);

  FillBut(2);
  sampler_.Tick(7, FakeClock::now_ns, FakeClock::now_ns);
  EXPECT_EQ(TakeAll().back().kind, Handover::Kind::kSample);
}

// What was dropped is said before the epoch is let go of, so both wait for room.
TEST_F(FullResultsTest, RetiringWaitsForRoom) {
  fakes::SampledVm vm(perf_, proc_, "web", 10, 11, 1);
  const auto epoch = vm.StartEpoch(1, 1, 1);
  sampler_.Add(epoch.get());
  Tick(0);
  Tick(1);
  FillBut(0);
  sampler_.Retire(epoch.get());
  sampler_.TakeCommands();
  EXPECT_EQ(TakeAll().back().kind, Handover::Kind::kTickMissed);
  const auto after = Tick(2);
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0].kind, Handover::Kind::kQueueFull);
  EXPECT_EQ(after[1].kind, Handover::Kind::kRetired);
}

}  // namespace
}  // namespace vcpulse::sampler

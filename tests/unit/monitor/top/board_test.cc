// What a stretch of time holds per vCPU.
#include "monitor/top/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/top/board_loader.h"
#include "tests/unit/monitor/top/top_fixture.h"

namespace vcpulse::top {
namespace {

using core::Band;
using metric::Metric;

// Of a store, in one window.
Board Loaded(const ChunkStore& store, const Window& window) {
  BoardLoader loader(store);
  loader.Want(window);
  EXPECT_TRUE(loader.Step(NeverStop));
  Board board(window);
  for (uint64_t n = store.first(); n < store.end(); ++n) {
    const auto chunk = store.Load(n);
    EXPECT_TRUE(ForEachEntry(*chunk, [&](const timeline::Entry& entry) {
                  return board.Add(store.Place(n).stream, store.streams().front(), entry);
                }).ok());
  }
  return board;
}

VcpuId Vcpu(uint32_t vm, uint32_t index) { return {.vm = {.stream = 0, .vm = vm}, .index = index}; }

TEST(SlotTest, AnInstantLiesInTheSlotThatEndsWithIt) {
  EXPECT_EQ(SlotOf(100, 10), 10);
  EXPECT_EQ(SlotOf(101, 10), 11);
  EXPECT_EQ(SlotOf(0, 10), 0);
  EXPECT_EQ(SlotOf(-1, 10), 0);
  EXPECT_EQ(SlotOf(-10, 10), -1);
  const Window window = Window::EndingAt(101, 3, 10);
  EXPECT_EQ(window.EndNs(), 110);
  EXPECT_EQ(window.BeginNs(), 80);
}

class BoardTest : public testing::Test {
 protected:
  BoardTest() {
    AddAll(store_, ChunksOf({.ticks = 100,
                             .markers = {{20, "boot"}, {60, "body"}},
                             .band = [](uint32_t vm, uint32_t vcpu, uint64_t tick) {
                               if (vm == 2) return Band::kHalted;
                               if (vcpu == 1) return Band::kSpinning;
                               return tick < 50 ? Band::kHalted : Band::kProductive;
                             }}));
    end_ns_ = store_.Span()->end_ns;
  }

  ChunkStore store_{ChunkStore::Limits()};
  int64_t end_ns_ = 0;
};

TEST_F(BoardTest, SharesAreOfTheWindow) {
  const Board all = Loaded(store_, Window::EndingAt(end_ns_, 20, kSecond_ns));
  ASSERT_EQ(all.vms().size(), 2u);
  const metric::Totals sum = all.Find(Vcpu(1, 0))->Sum();
  EXPECT_NEAR(sum.MeasuredNs(), 99 * 1e8, 1e6);
  EXPECT_NEAR(*sum.Value(Metric::kProductive), 50.0 / 99, 1e-3);
  EXPECT_EQ(*all.Find(Vcpu(1, 1))->Sum().Value(Metric::kSpinning), 1);
  EXPECT_EQ(*all.Find(Vcpu(2, 0))->Sum().Value(Metric::kHalted), 1);
  EXPECT_EQ(all.Find(Vcpu(1, 0))->verdict.band, Band::kProductive);
  EXPECT_EQ(all.Find(Vcpu(3, 0)), nullptr);
  EXPECT_EQ(all.Find(Vcpu(1, 9)), nullptr);

  const Board last = Loaded(store_, Window::EndingAt(end_ns_, 10, 100'000'000));
  EXPECT_NEAR(last.Find(Vcpu(1, 0))->Sum().MeasuredNs(), 1e9, 2e6);
  EXPECT_EQ(*last.Find(Vcpu(1, 0))->Sum().Value(Metric::kProductive), 1);
}

TEST_F(BoardTest, ASlotHoldsItsOwnTime) {
  const Window window = Window::EndingAt(end_ns_, 12, kSecond_ns);
  const Board board = Loaded(store_, window);
  const Track& track = *board.Find(Vcpu(1, 0));
  double measured_ns = 0;
  for (size_t i = 0; i < window.slots; ++i) {
    const metric::Totals slot = track.At(window.first_slot + static_cast<int64_t>(i));
    EXPECT_LE(slot.MeasuredNs(), 1.001e9);
    measured_ns += slot.MeasuredNs();
  }
  EXPECT_NEAR(measured_ns, track.Sum().MeasuredNs(), 1);
  EXPECT_EQ(track.At(window.first_slot - 1).MeasuredNs(), 0);
  EXPECT_EQ(track.At(window.first_slot + 12).MeasuredNs(), 0);
}

TEST_F(BoardTest, TicksOfSeveralVmsAreCountedOnce) {
  const Board board = Loaded(store_, Window::EndingAt(end_ns_, 20, kSecond_ns));
  EXPECT_EQ(board.Cost().ticks, 100u);
  EXPECT_EQ(board.Cost().samples, 200u);
  EXPECT_EQ(board.Cost().gaps, 0u);
  EXPECT_GT(board.Cost().read_ns, 0);
  EXPECT_GT(board.Cost().most_late_ns, 0);
}

TEST_F(BoardTest, MarkersInTheWindow) {
  const Board all = Loaded(store_, Window::EndingAt(end_ns_, 20, kSecond_ns));
  ASSERT_EQ(all.marks().size(), 2u);
  EXPECT_EQ(all.marks()[0].name, "boot");
  EXPECT_EQ(all.marks()[1].name, "body");
  const Board last = Loaded(store_, Window::EndingAt(end_ns_, 5, kSecond_ns));
  ASSERT_EQ(last.marks().size(), 1u);
  EXPECT_EQ(last.marks()[0].name, "body");
}

TEST_F(BoardTest, OneTickAlone) {
  Window window = Window::EndingAt(end_ns_, 20, 100'000'000);
  window.latest_only = true;
  const Board board = Loaded(store_, window);
  EXPECT_NEAR(board.Find(Vcpu(1, 0))->Sum().MeasuredNs(), 1e8, 1e6);
}

TEST_F(BoardTest, NothingAfterUntil) {
  Window window = Window::EndingAt(end_ns_ - 5 * kSecond_ns, 20, kSecond_ns);
  window.until_ns = end_ns_ - 6 * kSecond_ns;
  BoardLoader loader(store_);
  loader.Want(window);
  ASSERT_TRUE(loader.Step(NeverStop));
  EXPECT_LE(*loader.board().Find(Vcpu(1, 0))->latest_ns, window.until_ns);
  EXPECT_EQ(loader.board().Find(Vcpu(1, 0))->verdict.band, Band::kHalted);
}

// The same as a board that was loaded at once, wherever the window went on the way.
TEST_F(BoardTest, AWindowThatMovesOnKnowsTheSame) {
  BoardLoader moving(store_);
  for (int64_t back = 8; back >= 0; --back) {
    const Window window = Window::EndingAt(end_ns_ - back * kSecond_ns, 30, 200'000'000);
    moving.Want(window);
    ASSERT_TRUE(moving.Step(NeverStop));
    BoardLoader anew(store_);
    anew.Want(window);
    ASSERT_TRUE(anew.Step(NeverStop));
    for (const uint32_t vm : {1u, 2u}) {
      const auto* a = moving.board().Find(Vcpu(vm, 0));
      const auto* b = anew.board().Find(Vcpu(vm, 0));
      ASSERT_TRUE(a != nullptr && b != nullptr);
      EXPECT_NEAR(a->Sum().MeasuredNs(), b->Sum().MeasuredNs(), 1) << back;
      EXPECT_EQ(a->verdict.band, b->verdict.band);
    }
    EXPECT_EQ(moving.board().Cost().ticks, anew.board().Cost().ticks) << back;
  }
}

TEST_F(BoardTest, LoadingCanBeInterrupted) {
  BoardLoader loader(store_);
  loader.Want(Window::EndingAt(end_ns_, 20, kSecond_ns));
  int asked = 0;
  EXPECT_FALSE(loader.Step([&] { return ++asked > 3; }));
  EXPECT_FALSE(loader.is_complete());
  EXPECT_TRUE(loader.Step(NeverStop));
  EXPECT_TRUE(loader.is_complete());
  EXPECT_EQ(loader.board().Cost().ticks, 100u);
}

TEST_F(BoardTest, StepsFromTickToTick) {
  std::vector<int64_t> ticks;
  int64_t at_ns = store_.Span()->begin_ns - 1;
  while (const auto next = TickNear(store_, 0, at_ns, 1)) {
    ASSERT_GT(*next, at_ns);
    ticks.push_back(at_ns = *next);
  }
  EXPECT_EQ(ticks.size(), 100u);  // each once, though two VMs have it
  for (size_t i = ticks.size() - 1; i > 0; --i) {
    EXPECT_EQ(TickNear(store_, 0, ticks[i], -1), ticks[i - 1]);
  }
  EXPECT_EQ(TickNear(store_, 0, ticks[0], 10), ticks[10]);
  EXPECT_EQ(TickNear(store_, 0, ticks[50], -25), ticks[25]);
  EXPECT_EQ(TickNear(store_, 0, ticks[90], 1000), ticks.back());
  EXPECT_FALSE(TickNear(store_, 0, ticks.back(), 1));
  EXPECT_FALSE(TickNear(store_, 0, ticks.front(), -1));
  EXPECT_FALSE(TickNear(store_, 7, at_ns, -1));
}

TEST(BoardOfSlowTicksTest, IntervalsAreSpreadOverTheirSlots) {
  ChunkStore store{ChunkStore::Limits()};
  AddAll(store, ChunksOf({.ticks = 10, .interval_ns = 10 * kSecond_ns, .ticks_per_chunk = 1}));
  const int64_t end_ns = store.Span()->end_ns;
  BoardLoader loader(store);
  const Window window = Window::EndingAt(end_ns, 60, kSecond_ns);
  loader.Want(window);
  ASSERT_TRUE(loader.Step(NeverStop));
  const Track* track = loader.board().Find(Vcpu(1, 0));
  ASSERT_NE(track, nullptr);
  for (size_t i = 5; i < 55; ++i) {
    EXPECT_NEAR(track->At(window.first_slot + static_cast<int64_t>(i)).MeasuredNs(), 1e9, 2e7) << i;
  }
}

}  // namespace
}  // namespace vcpulse::top

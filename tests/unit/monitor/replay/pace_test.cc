#include "monitor/replay/pace.h"

#include <limits>

#include "gtest/gtest.h"

namespace vcpulse::replay {
namespace {

constexpr int64_t kNow = 1'000'000;
constexpr int64_t kMs = 1'000'000;

timeline::Entry TickAt(int64_t mono_ns) {
  timeline::TickEntry tick;
  tick.sample.wake_ns = mono_ns;
  return {.sequence = 1, .record = tick};
}

timeline::Entry MarkerAt(int64_t mono_ns) {
  v1::Marker marker;
  marker.set_mono_ns(mono_ns);
  return {.sequence = 1, .record = marker};
}

TEST(Pace, TheFirstIsDueNowAndTheOthersAsLongAfterIt) {
  Pace pace({});
  EXPECT_EQ(pace.DueNs(TickAt(500 * kMs), kNow), kNow);
  // Whatever the time is by then: one that was late delays no other.
  EXPECT_EQ(pace.DueNs(TickAt(600 * kMs), kNow + 70 * kMs), kNow + 100 * kMs);
  EXPECT_EQ(pace.DueNs(TickAt(750 * kMs), kNow + 999 * kMs), kNow + 250 * kMs);
}

TEST(Pace, SpeedDividesTheTime) {
  Pace fast({.speed = 10});
  Pace slow({.speed = 0.5});
  for (Pace* pace : {&fast, &slow}) pace->DueNs(TickAt(0), kNow);
  EXPECT_EQ(fast.DueNs(TickAt(100 * kMs), kNow), kNow + 10 * kMs);
  EXPECT_EQ(slow.DueNs(TickAt(100 * kMs), kNow), kNow + 200 * kMs);
}

TEST(Pace, WhatExplainsOtherRecordsIsNotPaced) {
  Pace pace({});
  v1::VcpuSet set;
  set.set_mono_ns(5);  // of an epoch that began long before the part that is played
  EXPECT_EQ(pace.DueNs({.sequence = 1, .record = v1::Session()}, kNow), std::nullopt);
  EXPECT_EQ(pace.DueNs({.sequence = 2, .record = set}, kNow), std::nullopt);
  // Context of a chunk: its snapshot is of the chunk's end.
  v1::ClockSnapshot clock;
  clock.set_mono_ns(9'000 * kMs);
  EXPECT_EQ(pace.DueNs({.sequence = 0, .record = clock}, kNow), std::nullopt);
  EXPECT_EQ(pace.DueNs(TickAt(500 * kMs), kNow), kNow);
  EXPECT_EQ(pace.DueNs({.sequence = 9, .record = v1::Summary()}, kNow), std::nullopt);
}

// The order of the stream is kept: an earlier instant is due with what came before it.
TEST(Pace, AnInstantBeforeAnEarlierOne) {
  Pace pace({});
  pace.DueNs(TickAt(500 * kMs), kNow);
  pace.DueNs(TickAt(600 * kMs), kNow);
  EXPECT_EQ(pace.DueNs(TickAt(400 * kMs), kNow), kNow + 100 * kMs);
  EXPECT_EQ(pace.DueNs(TickAt(700 * kMs), kNow), kNow + 200 * kMs);
}

TEST(Pace, StampsOfMarkersHoldNothingUp) {
  Pace pace({});
  EXPECT_EQ(pace.DueNs(MarkerAt(5), kNow), std::nullopt);
  pace.DueNs(TickAt(500 * kMs), kNow);
  EXPECT_EQ(pace.DueNs(MarkerAt(550 * kMs), kNow), kNow + 50 * kMs);
  EXPECT_EQ(pace.DueNs(MarkerAt(3'600'000 * kMs), kNow), std::nullopt);
  EXPECT_EQ(pace.DueNs(TickAt(600 * kMs), kNow), kNow + 100 * kMs);
}

TEST(Pace, PausesAreKeptUnlessTheyAreCut) {
  Pace whole({});
  Pace cut({.speed = 2, .longest_pause_ns = 1000 * kMs});
  for (Pace* pace : {&whole, &cut}) pace->DueNs(TickAt(0), kNow);
  EXPECT_EQ(whole.DueNs(TickAt(60'000 * kMs), kNow), kNow + 60'000 * kMs);
  EXPECT_EQ(cut.DueNs(TickAt(60'000 * kMs), kNow), kNow + 500 * kMs);
  EXPECT_EQ(cut.DueNs(TickAt(60'100 * kMs), kNow), kNow + 550 * kMs);
}

TEST(Pace, InstantsOfADamagedFileAreDueSomeTime) {
  Pace pace({.speed = 0.001});
  pace.DueNs(TickAt(std::numeric_limits<int64_t>::min()), kNow);
  for (const int64_t instant : {int64_t{0}, std::numeric_limits<int64_t>::max(), int64_t{5}}) {
    const auto due = pace.DueNs(TickAt(instant), kNow);
    EXPECT_GE(due.value_or(kNow), kNow);
  }
}

}  // namespace
}  // namespace vcpulse::replay

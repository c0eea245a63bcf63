#include "monitor/core/schedule.h"

#include <gtest/gtest.h>

namespace vcpulse::core {
namespace {

TEST(Schedule, DeadlinesAreAbsolute) {
  const Schedule schedule(1000, 100);
  EXPECT_EQ(schedule.DeadlineOf(0), 1000);
  EXPECT_EQ(schedule.DeadlineOf(7), 1700);
}

TEST(Schedule, AnEarlyFinishWaitsForTheNextTick) {
  const Schedule schedule(1000, 100);
  EXPECT_EQ(schedule.Next(3, 1301), 4u);
  EXPECT_EQ(schedule.Next(3, 1399), 4u);
  EXPECT_EQ(schedule.Next(3, 1400), 4u);  // due right now, not missed
}

// A missed tick is never caught up: no burst of short intervals after a stall.
TEST(Schedule, MissedTicksAreSkipped) {
  const Schedule schedule(1000, 100);
  EXPECT_EQ(schedule.Next(3, 1401), 5u);
  EXPECT_EQ(schedule.Next(3, 2050), 11u);
}

TEST(Schedule, BeforeTheStartNothingIsMissed) { EXPECT_EQ(Schedule(1000, 100).Next(0, 900), 1u); }

}  // namespace
}  // namespace vcpulse::core

#include "tests/accuracy/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace vcpulse::accuracy {
namespace {

TEST(Wilson95, OfPublishedCases) {
  // Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
  const auto expect = [](uint64_t part, uint64_t whole, double low, double high) {
    const auto bounds = Wilson95({.part = part, .whole = whole});
    ASSERT_TRUE(bounds);
    EXPECT_NEAR(bounds->low, low, 0.00005) << part;
    EXPECT_NEAR(bounds->high, high, 0.00005) << part;
  };
  expect(81, 263, 0.2553, 0.3662);
  expect(15, 148, 0.0624, 0.1605);
  expect(0, 20, 0.0000, 0.1611);
  expect(1, 29, 0.0061, 0.1718);
}

TEST(Wilson95, OfNothingIsNothing) { EXPECT_FALSE(Wilson95({})); }

TEST(Wilson95, StaysWithinShares) {
  const auto bounds = Wilson95({.part = 20, .whole = 20});
  ASSERT_TRUE(bounds);
  EXPECT_NEAR(bounds->low, 1 - 0.1611, 0.00005);
  EXPECT_EQ(bounds->high, 1);
}

TEST(DetectionDelays, AChangeShownAtOnceTakesNothing) {
  const Delays delays = DetectionDelays(std::vector{1, 1, 2, 2}, std::vector{1, 1, 2, 2});
  EXPECT_EQ(delays.changes, 1u);
  EXPECT_EQ(delays.missed, 0u);
  EXPECT_EQ(delays.Mean(), 0.0);
}

TEST(DetectionDelays, CountsTicksUntilItIsShown) {
  const Delays delays =
      DetectionDelays(std::vector{1, 2, 2, 2, 1, 1}, std::vector{1, 1, 1, 2, 2, 1});
  EXPECT_EQ(delays.changes, 2u);
  EXPECT_EQ(delays.ticks, 3u);
  EXPECT_EQ(delays.longest, 2u);
  EXPECT_EQ(delays.Mean(), 1.5);
}

TEST(DetectionDelays, AMissedChangeHasNoDelay) {
  // Shown only when it was over, and at the end not at all.
  const Delays delays = DetectionDelays(std::vector{1, 2, 1, 2}, std::vector{1, 1, 2, 1});
  EXPECT_EQ(delays.changes, 3u);
  EXPECT_EQ(delays.missed, 3u);
  EXPECT_FALSE(delays.Mean());
}

TEST(DetectionDelays, TimedFromTheFirstWholeTick) {
  // The third tick is of both: whatever is shown there is neither early nor late.
  const Delays delays = DetectionDelays(std::vector{1, 1, -1, 2, 2}, std::vector{1, 1, 1, 1, 2});
  EXPECT_EQ(delays.changes, 1u);
  EXPECT_EQ(delays.ticks, 1u);
  // A mixed tick within one class is no change.
  EXPECT_EQ(DetectionDelays(std::vector{1, -1, 1}, std::vector{1, 2, 1}).changes, 0u);
}

TEST(DetectionDelays, OfVerdictsInSeries) {
  Delays sum = DetectionDelays(std::vector{1, 2}, std::vector{1, 2});
  sum += DetectionDelays(std::vector{1, 2, 2}, std::vector{1, 1, 2});
  EXPECT_EQ(sum.changes, 2u);
  EXPECT_EQ(sum.longest, 1u);
  EXPECT_EQ(sum.Mean(), 0.5);
}

}  // namespace
}  // namespace vcpulse::accuracy

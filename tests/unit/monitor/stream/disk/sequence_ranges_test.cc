#include "monitor/stream/disk/sequence_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace vcpulse::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(SequenceRanges, NeighboursAreOne) {
  SequenceRanges ranges;
  ranges.Add(11, 20);
  ranges.Add(1, 5);
  EXPECT_THAT(ranges.ranges(), ElementsAre(Pair(1u, 5u), Pair(11u, 20u)));
  EXPECT_TRUE(ranges.Contains(12, 20));
  EXPECT_FALSE(ranges.Contains(5, 11));
  EXPECT_FALSE(ranges.Contains(6, 7));
  EXPECT_EQ(ranges.EndOf(11), 20u);
  EXPECT_EQ(ranges.EndOf(20), 20u);
  EXPECT_EQ(ranges.EndOf(10), std::nullopt);
  EXPECT_EQ(ranges.EndOf(21), std::nullopt);
  ranges.Add(6, 10);
  EXPECT_THAT(ranges.ranges(), ElementsAre(Pair(1u, 20u)));
  ranges.Add(3, 25);
  EXPECT_THAT(ranges.ranges(), ElementsAre(Pair(1u, 25u)));
  ranges.Add(9, 8);  // none
  EXPECT_THAT(ranges.ranges(), ElementsAre(Pair(1u, 25u)));
}

TEST(SequenceRanges, OfTheLargestNumbersToo) {
  constexpr uint64_t kFar = uint64_t{1} << 62;
  SequenceRanges ranges;
  ranges.Add(kFar, kFar);
  ranges.Add(0, 0);
  EXPECT_THAT(ranges.ranges(), ElementsAre(Pair(0u, 0u), Pair(kFar, kFar)));
  ranges.Add(1, kFar - 1);
  EXPECT_THAT(ranges.ranges(), ElementsAre(Pair(0u, kFar)));
}

// In every order, over the bounds of blocks, as a set of numbers would have it.
TEST(SequenceRanges, AreWhatASetOfTheirNumbersIs) {
  constexpr uint64_t kNumbers = 3000;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::minstd_rand random(seed);
    SequenceRanges ranges;
    std::vector<bool> numbers(kNumbers + 2);
    const uint64_t longest = 1 + seed % 5 * seed;
    for (int i = 0; i < 1500; ++i) {
      const uint64_t first = 1 + random() % kNumbers;
      const uint64_t last = std::min(kNumbers, first + random() % longest);
      ranges.Add(first, last);
      std::fill(numbers.begin() + static_cast<int64_t>(first),
                numbers.begin() + static_cast<int64_t>(last) + 1, true);
      const uint64_t asked = 1 + random() % kNumbers;
      ASSERT_EQ(ranges.EndOf(asked).has_value(), numbers[asked]) << seed << " " << asked;
    }
    std::vector<SequenceRanges::Range> wanted;
    for (uint64_t number = 1; number <= kNumbers; ++number) {
      if (!numbers[number]) continue;
      if (!numbers[number - 1]) wanted.emplace_back(number, number);
      wanted.back().second = number;
    }
    ASSERT_EQ(ranges.ranges(), wanted) << seed;
    for (const auto& [first, last] : wanted) {
      EXPECT_TRUE(ranges.Contains(first, last));
      EXPECT_FALSE(ranges.Contains(first, last + 1));
      EXPECT_FALSE(ranges.Contains(first - 1, last));
      EXPECT_EQ(ranges.EndOf(first), last);
    }
  }
}

// A day of one stream, a chunk of about ten records each second, of which three collectors have
// one in three each. As nodes of a map they took 1.2 MB.
TEST(SequenceRanges, TakeFewBytesEach) {
  constexpr int kChunks = 86'400;
  std::minstd_rand random(1);
  SequenceRanges ranges;
  uint64_t next = 1;
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const uint64_t records = 9 + random() % 4;
    if (random() % 3 == 0) ranges.Add(next, next + records - 1);
    next += records;
  }
  EXPECT_GT(ranges.ranges().size(), 19'000u);
  EXPECT_LT(ranges.memory_bytes(), 64u << 10);
}

}  // namespace
}  // namespace vcpulse::stream

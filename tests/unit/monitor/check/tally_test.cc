// Tallies of a few nanoseconds, where one too many shows.

#include "monitor/check/tally.h"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace vcpulse::check {
namespace {

using core::Band;

Observation Seen(Band band, std::optional<double> ipc = {}) {
  Observation seen{.verdict = {.band = band}};
  seen.values[static_cast<size_t>(Metric::kIpc)] = ipc;
  return seen;
}

// One piece from 0 on: each observation lasts so many ns.
Tallied Tally1(const Quantity& quantity, const std::optional<Limit>& limit,
               const std::vector<std::pair<std::optional<Observation>, int64_t>>& parts) {
  const auto tally = NewTally(quantity, limit);
  int64_t now_ns = 0;
  for (const auto& [seen, length_ns] : parts) {
    tally->Add({.when = {now_ns, now_ns + length_ns},
                .observation = seen ? &*seen : nullptr,
                .begins = now_ns == 0});
    now_ns += length_ns;
  }
  return tally->Finish();
}

const Quantity kMedian{
    .kind = Quantity::Kind::kPercentile, .metric = Metric::kIpc, .percentile = 50};

Bounds MedianOf(const std::vector<std::pair<std::optional<Observation>, int64_t>>& parts,
                const std::optional<Limit>& limit = {}) {
  return Tally1(kMedian, limit, parts).observed.value_or(Bounds{-1, -1});
}

std::pair<std::optional<Observation>, int64_t> Ipc(double ipc, int64_t ns = 1) {
  return {Seen(Band::kProductive, ipc), ns};
}

TEST(IpcTally, CountsToTheNanosecond) {
  EXPECT_EQ(MedianOf({Ipc(1), Ipc(2)}), (Bounds{1, 1}));
  EXPECT_EQ(MedianOf({Ipc(1), Ipc(2, 2)}), (Bounds{2, 2}));
  EXPECT_EQ(MedianOf({Ipc(1, 499), Ipc(2, 501)}), (Bounds{2, 2}));
  EXPECT_EQ(MedianOf({Ipc(1), Ipc(2), {std::nullopt, 1}}), (Bounds{1, 2}));
  EXPECT_EQ(MedianOf({Ipc(1), {Seen(Band::kHalted), 5}}), (Bounds{1, 1}));
}

TEST(IpcTally, HoldsAgainstTheLimitToTheNanosecond) {
  const Limit two{.comparison = Comparison::kAtLeast, .value = 2};
  // 1 of 3 ns is below, 1 at, 1 above: the second is at it.
  EXPECT_EQ(MedianOf({Ipc(1), Ipc(2), Ipc(3)}, two), (Bounds{2, 2}));
  // 1 of 4 ns is below, 1 at: two of four are enough.
  EXPECT_EQ(MedianOf({Ipc(1), Ipc(2), Ipc(3, 2)}, two), (Bounds{2, 2}));
  EXPECT_EQ(MedianOf({Ipc(1), Ipc(2), Ipc(3, 3)}, two), (Bounds{3, 3}));
  EXPECT_EQ(MedianOf({Ipc(1), Ipc(3, 2)}, two), (Bounds{3, 3}));
  EXPECT_EQ(MedianOf({Ipc(2), Ipc(3, 2)}, two), (Bounds{3, 3}));
  EXPECT_EQ(MedianOf({Ipc(1, 2), Ipc(2)}, two), (Bounds{1, 1}));
  // An unknown ns at the low end makes two of four below; at the high end one is, and one at it.
  EXPECT_EQ(MedianOf({Ipc(1), Ipc(2), Ipc(3), {std::nullopt, 1}}, two), (Bounds{1, 2}));
}

// A part of `length` ns from `from` on, with a reading over so many ns that ends in it.
struct ReadPart {
  int64_t from_ns = 0;
  int64_t to_ns = 0;
  std::optional<double> exits{};
  TimeRange over{};
  bool begins = false;
};

Bounds MedianExits(const std::vector<ReadPart>& parts) {
  const auto tally = NewTally(
      {.kind = Quantity::Kind::kPercentile, .metric = Metric::kExits, .percentile = 50}, {});
  for (const ReadPart& part : parts) {
    Observation seen{.verdict = {.band = Band::kHalted}};
    const auto i = static_cast<size_t>(Metric::kExits);
    seen.values[i] = part.exits;
    seen.read_over[i] = part.over;
    // Another metric's time is not this one's.
    seen.read_over[static_cast<size_t>(Metric::kMigrations)] = {.from_ns = 0, .to_ns = 1000};
    tally->Add({.when = {part.from_ns, part.to_ns}, .observation = &seen, .begins = part.begins});
  }
  return tally->Finish().observed.value_or(Bounds{-1, -1});
}

// They count for the time that they are of, whatever the band, and never for time that is not
// judged; the rest is unknown.
TEST(ReadingsTally, CountForTheirOwnTime) {
  const ReadPart first{.from_ns = 10, .to_ns = 14, .begins = true};
  const auto read = [](double exits, int64_t from_ns, int64_t to_ns, int64_t tick_ns) {
    return ReadPart{
        .from_ns = tick_ns - 1, .to_ns = tick_ns, .exits = exits, .over = {from_ns, to_ns}};
  };
  EXPECT_EQ(MedianExits({first, read(7, 10, 15, 15)}), (Bounds{7, 7}));
  EXPECT_EQ(MedianExits({first, read(7, 9, 15, 15)}), (Bounds{-1, -1}));  // it begins before
  EXPECT_EQ(MedianExits({first, read(7, 10, 15, 15), {15, 19}, read(9, 15, 20, 20)}),
            (Bounds{7, 7}));
  EXPECT_EQ(MedianExits({first, read(7, 10, 15, 15), {15, 19}, read(9, 15, 20, 20), {20, 21}}),
            (Bounds{7, 9}));
  EXPECT_EQ(MedianExits({first, read(7, 13, 15, 15)}),
            (Bounds{0, std::numeric_limits<double>::infinity()}));
}

// An interval over the border of two pieces is in both; its reading is in one.
TEST(ReadingsTally, AreInThePartThatHoldsTheirEnd) {
  const TimeRange over{.from_ns = 10, .to_ns = 16};
  const ReadPart before{.from_ns = 10, .to_ns = 14, .begins = true};
  const ReadPart left{.from_ns = 14, .to_ns = 15, .exits = 7, .over = over};
  const ReadPart right{.from_ns = 15, .to_ns = 17, .exits = 7, .over = over};
  EXPECT_EQ(MedianExits({before, left}), (Bounds{-1, -1}));
  EXPECT_EQ(MedianExits({before, left, right, {17, 22}}),
            (Bounds{0, 7}));  // six of twelve, not twelve
  ReadPart apart = right;
  apart.begins = true;  // the piece begins after the reading did
  EXPECT_EQ(MedianExits({before, left, apart}), (Bounds{-1, -1}));
}

TEST(IpcTally, AnEstimateNeverCrossesTheLimit) {
  // In one bucket: without a limit it may be each of its values.
  const std::vector<std::pair<std::optional<Observation>, int64_t>> near = {Ipc(1.000, 2),
                                                                            Ipc(1.001), Ipc(1.002)};
  EXPECT_EQ(MedianOf(near), (Bounds{1.000, 1.002}));
  const Bounds below = MedianOf(near, Limit{Comparison::kBelow, 1.001});
  EXPECT_LT(below.high, 1.001);
  EXPECT_GT(below.low, 1.0);
  EXPECT_EQ(MedianOf(near, Limit{Comparison::kBelow, 1.000}), (Bounds{1, 1}));
  const std::vector<std::pair<std::optional<Observation>, int64_t>> upper = {Ipc(1.000), Ipc(1.001),
                                                                             Ipc(1.002, 3)};
  EXPECT_EQ(MedianOf(upper, Limit{Comparison::kAbove, 1.001}), (Bounds{1.002, 1.002}));
}

TEST(IpcTally, ZeroIsTheLowestThereIs) {
  EXPECT_EQ(MedianOf({Ipc(0), Ipc(1e-7)}), (Bounds{0, 0}));
  EXPECT_EQ(MedianOf({Ipc(0), Ipc(1e-7, 2)}), (Bounds{1e-7, 1e-7}));
  const Limit zero{.comparison = Comparison::kAtLeast, .value = 0};
  EXPECT_EQ(MedianOf({{std::nullopt, 2}, Ipc(1)}, zero).low, 0);
  EXPECT_EQ(MedianOf({Ipc(1), Ipc(3)}, zero), (Bounds{1, 1}));
  EXPECT_EQ(MedianOf({Ipc(1e300), Ipc(1e300)}), (Bounds{1e300, 1e300}));
}

TEST(IpcTally, ItsWorstIsTheMeanOverTheTimeCounted) {
  const Tallied low = Tally1(kMedian, Limit{Comparison::kAtLeast, 4},
                             {Ipc(3, 1), {std::nullopt, 7}, Ipc(1, 3), {Seen(Band::kHalted), 5}});
  EXPECT_EQ(low.worst, (ObservedRange{.when = {0, 16}, .observed = 1.5}));
  EXPECT_EQ(low.unknown_ns, 7);
  EXPECT_EQ(Tally1(kMedian, {}, {Ipc(3)}).worst, std::nullopt);
}

TEST(ShareTally, CountsToTheNanosecond) {
  const Quantity spinning{.metric = Metric::kSpinning};
  const Tallied tallied =
      Tally1(spinning, {},
             {{Seen(Band::kSpinning), 1}, {Seen(Band::kHalted), 2}, {Seen(Band::kUnknown), 1}});
  EXPECT_EQ(tallied.observed, (Bounds{0.25, 0.5}));
  EXPECT_EQ(tallied.unknown_ns, 1);
  EXPECT_EQ(tallied.worst, std::nullopt);
  EXPECT_EQ(Tally1(spinning, {}, {}).observed, std::nullopt);
  EXPECT_EQ(Tally1(spinning, {}, {{std::nullopt, 1}}).observed, (Bounds{0, 1}));
}

TEST(ShareTally, ItsWorstIsWhatIsSurelyOnTheWrongSide) {
  const Quantity spinning{.metric = Metric::kSpinning};
  const std::vector<std::pair<std::optional<Observation>, int64_t>> parts = {
      {Seen(Band::kSpinning), 1}, {Seen(Band::kHalted), 2}, {Seen(Band::kUnknown), 1}};
  EXPECT_EQ(Tally1(spinning, Limit{Comparison::kBelow, 0}, parts).worst->observed, 0.25);
  EXPECT_EQ(Tally1(spinning, Limit{Comparison::kAbove, 1}, parts).worst->observed, 0.5);
}

TEST(LongestTally, CountsToTheNanosecond) {
  const Quantity longest{.kind = Quantity::Kind::kLongest, .metric = Metric::kSpinning};
  const std::vector<std::pair<std::optional<Observation>, int64_t>> parts = {
      {Seen(Band::kSpinning), 2},
      {Seen(Band::kUnknown), 1},
      {Seen(Band::kHalted), 1},
      {Seen(Band::kSpinning), 1},
      {Seen(Band::kSpinning), 1}};
  const Tallied tallied = Tally1(longest, Limit{Comparison::kAtMost, 0}, parts);
  EXPECT_EQ(tallied.observed, (Bounds{2, 3}));
  EXPECT_EQ(tallied.unknown_ns, 1);
  // The first of two of one length.
  EXPECT_EQ(tallied.worst, (ObservedRange{.when = {0, 2}, .observed = 2}));
  EXPECT_EQ(Tally1(longest, Limit{Comparison::kAtLeast, 9}, parts).worst,
            (ObservedRange{.when = {0, 3}, .observed = 3}));
  EXPECT_EQ(Tally1(longest, {}, parts).worst, std::nullopt);
  EXPECT_EQ(Tally1(longest, {}, {}).observed, std::nullopt);
  EXPECT_EQ(Tally1(longest, {}, {{Seen(Band::kSpinning), 1}}).observed, (Bounds{1, 1}));
  EXPECT_EQ(Tally1(longest, {}, {{std::nullopt, 1}}).unknown_ns, 1);
}

TEST(ShareOf, AnIpcIsNoShare) {
  const Observation seen = Seen(Band::kProductive, 1);
  EXPECT_EQ(ShareOf({.metric = Metric::kHeld}, {.when = {0, 1}, .observation = &seen}),
            (Share{.bounds = {0, 1}, .doubt = Doubt::kNotKnown}));
}

}  // namespace
}  // namespace vcpulse::check

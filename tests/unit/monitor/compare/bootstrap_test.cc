// Intervals of the bootstrap and of several runs, on chains whose truth is known by construction.

#include "monitor/compare/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "monitor/compare/recording.h"
#include "tests/unit/fixtures/made_interval.h"

namespace vcpulse::compare {
namespace {

using metric::Metric;

constexpr double kTick = 1e8;

// Draws of its own, as those of std differ between libraries.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double Normal() {  // Box and Muller
    return std::sqrt(-2 * std::log(1 - Uniform())) * std::cos(6.283185307179586 * Uniform());
  }

 private:
  std::mt19937_64 engine_;
};

// A chain of two states that is drawn anew with probability 0.2 each tick: states last 5 draws and
// more, and `share` of all time is spent in the first.
std::vector<Piece> SharesOfChain(Random& random, size_t ticks, double share, size_t run = 0) {
  std::vector<Piece> pieces;
  bool on = random.Uniform() < share;
  for (size_t i = 0; i < ticks; ++i) {
    if (random.Uniform() < 0.2) on = random.Uniform() < share;
    const bool begins = i == 0 || (run > 0 && i % run == 0);
    pieces.push_back({.part = on ? kTick : 0, .whole = kTick, .begins = begins});
  }
  return pieces;
}

// IPC that wanders around `mean` (autoregressive, 0.8 from tick to tick), while cycles come and go.
std::vector<Piece> IpcOfChain(Random& random, size_t ticks, double mean) {
  std::vector<Piece> pieces;
  double away = random.Normal();
  bool busy = true;
  for (size_t i = 0; i < ticks; ++i) {
    if (random.Uniform() < 0.2) busy = random.Uniform() < 0.6;
    away = 0.8 * away + 0.6 * random.Normal();
    const double cycles = busy ? 3 * kTick : 0.05 * kTick;
    pieces.push_back({.part = cycles * mean * (1 + 0.1 * away), .whole = cycles, .begins = i == 0});
  }
  return pieces;
}

// How many intervals hold the truth.
template <typename Chain>
int Covered(const Chain& chain, double a, double b, double truth, uint64_t pairs = 100) {
  Random random(20260131);
  int covered = 0;
  for (uint64_t pair = 0; pair < pairs; ++pair) {
    const auto of_a = Resample(chain(random, a), 10, 2 * pair);
    const auto of_b = Resample(chain(random, b), 10, 2 * pair + 1);
    if (!of_a || !of_b) continue;
    const Contrast contrast = ContrastOf(*of_a, *of_b, 1);
    if (contrast.low <= truth && truth <= contrast.high) ++covered;
  }
  return covered;
}

TEST(Bootstrap, SharesOfCorrelatedTicksAreHeldBy90To99Of100Intervals) {
  const auto chain = [](Random& random, double share) { return SharesOfChain(random, 600, share); };
  const int shifted = Covered(chain, 0.30, 0.40, 0.10);
  const int same = Covered(chain, 0.30, 0.30, 0);
  RecordProperty("shifted", shifted);
  RecordProperty("same", same);
  EXPECT_GE(shifted, 90);
  EXPECT_LE(shifted, 99);
  EXPECT_GE(same, 90);
  EXPECT_LE(same, 99);
}

TEST(Bootstrap, InTheLongRunTheyHoldItAsOftenAsTheySay) {
  const int shares =
      Covered([](Random& random, double share) { return SharesOfChain(random, 600, share); }, 0.3,
              0.4, 0.1, 1000);
  const int ipc = Covered([](Random& random, double mean) { return IpcOfChain(random, 600, mean); },
                          1.0, 1.1, 0.1, 1000);
  RecordProperty("shares", shares);
  RecordProperty("ipc", ipc);
  EXPECT_GE(shares, 925);
  EXPECT_LE(shares, 975);
  EXPECT_GE(ipc, 925);
  EXPECT_LE(ipc, 975);
}

TEST(Bootstrap, SoAreThoseOfManyShortSpans) {
  const auto chain = [](Random& random, double share) {
    return SharesOfChain(random, 600, share, 40);
  };
  const int covered = Covered(chain, 0.30, 0.40, 0.10);
  RecordProperty("covered", covered);
  EXPECT_GE(covered, 90);
  EXPECT_LE(covered, 99);
}

TEST(Bootstrap, IpcOfCorrelatedTicksIsHeldBy90To99Of100Intervals) {
  const auto chain = [](Random& random, double mean) { return IpcOfChain(random, 600, mean); };
  const int covered = Covered(chain, 1.0, 1.1, 0.1);
  RecordProperty("covered", covered);
  EXPECT_GE(covered, 90);
  EXPECT_LE(covered, 99);
}

// What the blocks are for: without them the same ticks look far too sure.
TEST(Bootstrap, CorrelatedTicksGetLongerBlocksAndWiderIntervals) {
  Random random(7);
  std::vector<Piece> chain = SharesOfChain(random, 2000, 0.3);
  std::vector<Piece> shuffled = chain;
  for (size_t i = shuffled.size() - 1; i > 0; --i) {
    std::swap(shuffled[i].part,
              shuffled[static_cast<size_t>(random.Uniform() * static_cast<double>(i + 1))].part);
  }
  EXPECT_GT(BestBlockLength(chain, 0.3), 10);
  EXPECT_LT(BestBlockLength(shuffled, 0.3), 8);
  const auto correlated = Resample(chain, 1, 1);
  const auto independent = Resample(shuffled, 1, 1);
  ASSERT_TRUE(correlated && independent);
  EXPECT_GT(ContrastOf(*correlated, *correlated, 1).standard_error,
            2 * ContrastOf(*independent, *independent, 1).standard_error);
}

TEST(Bootstrap, TheSamePiecesGiveTheSameNumbers) {
  Random random(1);
  const std::vector<Piece> chain = SharesOfChain(random, 300, 0.3);
  EXPECT_EQ(Resample(chain, 1, 5)->ratios, Resample(chain, 1, 5)->ratios);
  EXPECT_NE(Resample(chain, 1, 5)->ratios, Resample(chain, 1, 6)->ratios);
}

// Each piece is drawn as often as another, whatever run it is in.
TEST(Bootstrap, ResamplesAreCentredOnTheRatioWithShortRunsToo) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < 400; ++i) {
    // Runs of 5 that are all in the band, and runs of 35 that hardly are.
    const bool in_short = i % 40 < 5;
    const bool on = in_short || i % 7 == 0;
    pieces.push_back({.part = on ? 1.0 : 0, .whole = 1, .begins = i % 40 == 0 || i % 40 == 5});
  }
  const auto resampled = Resample(pieces, 20, 3);
  ASSERT_TRUE(resampled);
  double mean = 0;
  for (const double ratio : resampled->ratios) mean += ratio / 1000;
  EXPECT_NEAR(mean, resampled->ratio, 0.01);
}

TEST(Bootstrap, TooLittleIsNoInterval) {
  Random random(1);
  EXPECT_FALSE(Resample(SharesOfChain(random, 19, 0.3), 1, 1));
  EXPECT_TRUE(Resample(SharesOfChain(random, 40, 0.3), 1, 1));
  // Enough ticks, but few that tell of it.
  std::vector<Piece> halted(400, Piece{});
  for (size_t i = 0; i < 19; ++i) halted[20 * i] = {.part = 1, .whole = 2};
  EXPECT_FALSE(Resample(halted, 1, 1));
  EXPECT_FALSE(Resample({}, 1, 1));
}

// One burst is one event, however many ticks it has: it proves no rate.
TEST(Bootstrap, OneBurstIsNotSure) {
  std::vector<Piece> quiet(300, Piece{.part = 0, .whole = 1});
  std::vector<Piece> burst = quiet;
  for (size_t i = 100; i < 130; ++i) burst[i].part = 1;
  const Contrast contrast = ContrastOf(*Resample(quiet, 10, 1), *Resample(burst, 10, 2), 1);
  EXPECT_DOUBLE_EQ(contrast.estimate, 0.1);
  EXPECT_LT(contrast.low, 0);
  EXPECT_GT(contrast.ChanceBeyond(0), 0.05);
}

TEST(Bootstrap, WhatNeverChangesHasNoUncertainty) {
  const std::vector<Piece> none(100, Piece{.part = 0, .whole = 1});
  const std::vector<Piece> all(100, Piece{.part = 1, .whole = 1});
  const Contrast same = ContrastOf(*Resample(all, 1, 1), *Resample(all, 1, 2), 1);
  EXPECT_EQ(same.low, 0);
  EXPECT_EQ(same.high, 0);
  EXPECT_EQ(same.ChanceBeyond(0), 1);
  const Contrast other = ContrastOf(*Resample(none, 1, 1), *Resample(all, 1, 2), 1);
  EXPECT_EQ(other.low, 1);
  EXPECT_EQ(other.ChanceBeyond(0), 0);
  EXPECT_EQ(other.ChanceAbove(0.5), 0);
  EXPECT_EQ(other.ChanceBelow(0.5), 1);
}

TEST(Bootstrap, AFactorMakesItRelative) {
  Random random(3);
  const auto a = Resample(SharesOfChain(random, 900, 0.4), 1, 1);
  const auto b = Resample(SharesOfChain(random, 900, 0.4), 1, 2);
  const Contrast contrast = ContrastOf(*a, *b, 0.5);
  EXPECT_DOUBLE_EQ(contrast.estimate, b->ratio - 0.5 * a->ratio);
  EXPECT_LT(contrast.low, contrast.estimate);
  EXPECT_LT(contrast.ChanceAbove(0), 0.02);
}

// Runs of 200 ticks whose share is drawn anew for each run, with a standard deviation of `noise`.
std::vector<double> SharesOfRuns(Random& random, size_t runs, double share, double noise) {
  std::vector<double> values;
  for (size_t run = 0; run < runs; ++run) {
    double part = 0;
    double whole = 0;
    for (const Piece& piece : SharesOfChain(random, 200, share + noise * random.Normal())) {
      part += piece.part;
      whole += piece.whole;
    }
    values.push_back(part / whole);
  }
  return values;
}

int CoveredByRuns(size_t runs, double noise_a, double noise_b) {
  Random random(20260201);
  int covered = 0;
  for (int pair = 0; pair < 2000; ++pair) {
    const std::vector<double> a = SharesOfRuns(random, runs, 0.45, noise_a);
    const std::vector<double> b = SharesOfRuns(random, runs, 0.55, noise_b);
    const Contrast contrast = ContrastOfRuns(a, b, 1);
    if (contrast.low <= 0.1 && 0.1 <= contrast.high) ++covered;
  }
  return covered;
}

// 5 + 5 runs with noise between them: with the normal distribution in place of Student's t, or with
// squares over n in place of n - 1, 91 to 93 of 100 intervals hold the truth.
TEST(Runs, IntervalsOf5And5NoisyRunsHoldTheTruthIn94To96Of100) {
  const int even = CoveredByRuns(5, 0.05, 0.05);
  const int uneven = CoveredByRuns(5, 0.02, 0.08);
  RecordProperty("even", even);
  RecordProperty("uneven", uneven);
  EXPECT_GE(even, 1880);
  EXPECT_LE(even, 1920);
  EXPECT_GE(uneven, 1880);
  EXPECT_LE(uneven, 1920);
}

// Why one recording per side is not enough: its interval knows nothing of other runs.
TEST(Runs, OneRunPerSideHoldsTheTruthFarLessOften) {
  Random random(5);
  int covered = 0;
  for (uint64_t pair = 0; pair < 200; ++pair) {
    const auto chain = [&random](double share) {
      return SharesOfChain(random, 600, share + 0.08 * random.Normal());
    };
    const auto a = Resample(chain(0.45), 10, 2 * pair);
    const auto b = Resample(chain(0.55), 10, 2 * pair + 1);
    const Contrast contrast = ContrastOf(*a, *b, 1);
    if (contrast.low <= 0.1 && 0.1 <= contrast.high) ++covered;
  }
  RecordProperty("covered", covered);
  EXPECT_LT(covered, 150);
}

// Worked out by hand: means 2 and 5, variances of the means 1/3 and 4/3, so t with 200/68 degrees
// of freedom.
TEST(Runs, IsWelchsInterval) {
  const std::vector<double> a = {1, 2, 3};
  const std::vector<double> b = {3, 5, 7};
  const Contrast contrast = ContrastOfRuns(a, b, 1);
  EXPECT_DOUBLE_EQ(contrast.estimate, 3);
  EXPECT_DOUBLE_EQ(contrast.standard_error, std::sqrt(5.0 / 3));
  EXPECT_NEAR(contrast.degrees_of_freedom, 50.0 / 17, 1e-12);
  EXPECT_NEAR(contrast.low, 3 - 3.2180 * std::sqrt(5.0 / 3), 0.002);
  EXPECT_DOUBLE_EQ(contrast.high - 3, 3 - contrast.low);
  const Contrast relative = ContrastOfRuns(a, b, 2);
  EXPECT_DOUBLE_EQ(relative.estimate, 1);
  EXPECT_DOUBLE_EQ(relative.standard_error, std::sqrt(4.0 / 3 + 4.0 / 3));
}

TEST(Series, FoldsBeyondItsLimitAndLosesNothing) {
  const metric::IntervalMaker maker;
  Series series;
  for (uint64_t i = 0; i < 5000; ++i) {
    maker.With({.verdict = {.band = core::Band::kProductive}, .counts = {i + 1, 1}},
               [&](const metric::Interval& interval) { series.Add(interval, i % 1000 == 0); });
  }
  EXPECT_LE(series.cells().size(), Series::kMostCells);
  EXPECT_GT(series.cells().size(), Series::kMostCells / 3);
  double cycles = 0;
  int64_t length_ns = 0;
  size_t begun = 0;
  for (const Cell& cell : series.cells()) {
    cycles += cell.totals.Of(Metric::kIpc).whole;
    length_ns += cell.length_ns;
    if (cell.begins) ++begun;
  }
  EXPECT_EQ(cycles, 5001.0 * 5000 / 2);
  EXPECT_EQ(length_ns, 500'000);
  EXPECT_EQ(series.ticks(), 5000u);
  EXPECT_EQ(begun, 5u);  // breaks are kept
}

TEST(Series, BreaksAloneDoNotMakeItGrow) {
  const metric::IntervalMaker maker;
  Series series;
  series.Limit(64);
  for (size_t i = 0; i < 10'000; ++i) {
    maker.With({}, [&](const metric::Interval& interval) { series.Add(interval, true); });
  }
  EXPECT_LE(series.cells().size(), 64u);
  EXPECT_EQ(series.length_ns(), 1'000'000);
}

}  // namespace
}  // namespace vcpulse::compare

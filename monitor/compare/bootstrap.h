#pragma once

// Intervals of a difference: from one recording per side by the circular block bootstrap of a
// ratio, from several per side by the variance between them. Pure: the same input gives the same
// numbers. docs/compare.md has the method in words.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace vcpulse::compare {

// One cell of a ratio: part / whole, summed over cells.
struct Piece {
  double part = 0;
  double whole = 0;
  bool begins = false;  // does not go on from the piece before
};

// The block length, in pieces, at which the circular block bootstrap estimates the variance of the
// ratio best, at least 1: Politis and White, "Automatic block-length selection for the dependent
// bootstrap", Econometric Reviews 23 (2004), with the correction by Patton, Politis and White,
// Econometric Reviews 28 (2009). It looks at part - ratio x whole, which the ratio is to first
// order the mean of; no pair of pieces with a break between them is compared.
double BestBlockLength(std::span<const Piece> pieces, double ratio);

// A ratio and what it might have been.
struct Resampled {
  double ratio = 0;
  std::vector<double> ratios;  // of the resamples
  double block_pieces = 0;     // length of a block
  double blocks = 0;           // how many of them the ratio rests on, weighted by their wholes
};

// Draws blocks of pieces with replacement, as many as make up the series; a block that reaches the
// end of an unbroken run goes on at that run's beginning, so each piece is drawn as often as
// another (Politis and Romano, "A circular block-resampling procedure for stationary data", 1992).
// Blocks are at least `least_block` pieces long, and at most an eighth of the series. Nothing where
// there is too little to judge by: fewer than 20 pieces with a whole, or less than 4 blocks' worth.
std::optional<Resampled> Resample(std::span<const Piece> pieces, double least_block, uint64_t seed);

// b - factor x a, for a factor of 1 their difference.
struct Contrast {
  double estimate = 0;
  double low = 0;  // ends of the 95 % interval
  double high = 0;
  double standard_error = 0;
  double degrees_of_freedom = 0;

  // How probable an estimate as far above (below) `limit` is, were the truth `limit`.
  double ChanceAbove(double limit) const;
  double ChanceBelow(double limit) const;
  // As far from `limit` on either side.
  double ChanceBeyond(double limit) const;
};

// The interval is that of the resamples' 2.5 % and 97.5 % quantiles, widened for few blocks: around
// each ratio by sqrt(k / (k - 1)) for its k blocks, and as Student's t of Welch's degrees of
// freedom is wider than the normal distribution (after Hesterberg, "What teachers should know about
// the bootstrap", The American Statistician 69 (2015), expanded percentile interval).
Contrast ContrastOf(const Resampled& a, const Resampled& b, double factor);

// The same from the values of at least 2 runs per side, each run one observation: Student's t on
// the difference of the means, with unequal variances (Welch, "The generalization of 'Student's'
// problem when several different population variances are involved", Biometrika 34 (1947)). What
// varies within a run is in the variance between runs too.
Contrast ContrastOfRuns(std::span<const double> a, std::span<const double> b, double factor);

}  // namespace vcpulse::compare

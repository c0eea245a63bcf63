#pragma once

// How long blocks of a series must be, so that one block tells little of the next. Pure.

#include <cstddef>
#include <span>

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

}  // namespace vcpulse::compare

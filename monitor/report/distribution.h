#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace vcpulse::report {

// Quantiles of a stream of values in bounded memory: a histogram whose buckets are 1/128 of their
// octave wide, from 2^-20 (about 1e-6) to 2^48 (3 days in ns): at most 68 kB, and only what lies
// between the smallest and the largest value seen is allocated.
class Distribution {
 public:
  // A quantile differs from the value of that rank by at most this share of it: half a bucket.
  // Values below the lowest bucket count as the smallest value seen, above the highest as the
  // largest.
  static constexpr double kRelativeError = 1.0 / 256;

  void Add(double value);

  uint64_t count() const { return count_; }
  // The smallest value with at least q (0..1) of all values at or below it, within
  // kRelativeError and never beyond the extremes, which are exact. Nothing where there is no value.
  std::optional<double> Quantile(double q) const;
  // Exact.
  std::optional<double> Max() const;

 private:
  void Grow(int bucket);

  uint64_t count_ = 0;
  double min_ = 0;
  double max_ = 0;
  uint64_t below_ = 0;  // values under the lowest bucket
  int first_ = 0;       // bucket of buckets_[0]
  std::vector<uint64_t> buckets_;
};

}  // namespace vcpulse::report

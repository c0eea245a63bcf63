#include "monitor/report/distribution.h"

#include <algorithm>
#include <cmath>

namespace vcpulse::report {
namespace {

constexpr int kPerOctave = 128;
constexpr int kLowestExponent = -20;  // of the lower bound of the lowest bucket
constexpr int kOctaves = 68;

// The bucket that holds `value` > 0, negative below the lowest.
int BucketOf(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);  // 0.5 <= mantissa < 1
  const int octave = exponent - 1 - kLowestExponent;
  if (octave >= kOctaves) return kOctaves * kPerOctave - 1;
  return octave * kPerOctave + static_cast<int>((mantissa - 0.5) * 2 * kPerOctave);
}

double MiddleOf(int bucket) {
  const double fraction = (bucket % kPerOctave + 0.5) / kPerOctave;
  return std::ldexp(1 + fraction, bucket / kPerOctave + kLowestExponent);
}

}  // namespace

void Distribution::Add(double value) {
  if (std::isnan(value)) return;
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = count_ == 0 ? value : std::max(max_, value);
  ++count_;
  const int bucket = value > 0 ? BucketOf(std::min(value, std::ldexp(1.0, 60))) : -1;
  if (bucket < 0) {
    ++below_;
    return;
  }
  Grow(bucket);
  ++buckets_[static_cast<size_t>(bucket - first_)];
}

void Distribution::Grow(int bucket) {
  if (buckets_.empty()) first_ = bucket;
  if (bucket < first_) {
    buckets_.insert(buckets_.begin(), static_cast<size_t>(first_ - bucket), 0);
    first_ = bucket;
  }
  const auto needed = static_cast<size_t>(bucket - first_) + 1;
  if (needed > buckets_.size()) buckets_.resize(needed);
}

std::optional<double> Distribution::Quantile(double q) const {
  if (count_ == 0) return std::nullopt;
  const double wanted = std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_));
  const uint64_t rank = std::max<uint64_t>(1, static_cast<uint64_t>(wanted));
  if (rank == 1) return min_;
  if (rank >= count_) return max_;
  uint64_t seen = below_;
  if (seen >= rank) return min_;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank) return std::clamp(MiddleOf(first_ + static_cast<int>(i)), min_, max_);
  }
  return max_;
}

std::optional<double> Distribution::Max() const {
  if (count_ == 0) return std::nullopt;
  return max_;
}

}  // namespace vcpulse::report

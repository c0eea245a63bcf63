#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "monitor/check/spans.h"

namespace vcpulse::check {

// A stretch of time and what was observed there.
struct ObservedRange {
  TimeRange when;
  double observed = 0;

  bool operator==(const ObservedRange&) const = default;
};

// Finds the window of at least ten ticks and about a second in which a mean was furthest on one
// side, or the whole of a piece of time that is shorter. Windows begin where ticks do, at most
// every tenth of a second. Memory is constant.
class WorstWindow {
 public:
  explicit WorstWindow(bool highest_is_worst) : highest_is_worst_(highest_is_worst) {}

  // The next part of the time, whose mean is sum / weight; `begins` where it does not go on from
  // the part before. A weight of 0 says nothing about the mean.
  void Add(const TimeRange& when, bool begins, double sum, double weight);
  // Nothing where nothing had a weight.
  std::optional<ObservedRange> Finish();

 private:
  struct Bucket {
    TimeRange when;
    double sum = 0;
    double weight = 0;
  };
  static constexpr size_t kBuckets = 10;

  void CloseBucket();
  void EndPiece();
  void CompareWindow();

  bool highest_is_worst_;
  std::optional<Bucket> open_;
  std::array<Bucket, kBuckets> closed_;  // a ring
  size_t count_ = 0;                     // closed since the piece began
  std::optional<ObservedRange> worst_;
};

}  // namespace vcpulse::check

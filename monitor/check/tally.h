#pragma once

// Adds up one quantity of one vCPU (or the gaps of one VM) over the parts of the judged time. What
// is not known may have been anything: it goes into the bounds. Memory is bounded, whatever the
// number of ticks. Pure.

#include <cstdint>
#include <memory>
#include <optional>

#include "monitor/check/coverage.h"
#include "monitor/check/expression.h"
#include "monitor/check/result.h"
#include "monitor/check/worst_window.h"

namespace vcpulse::check {

// Which side of which value is asked about.
struct Limit {
  Comparison comparison = Comparison::kAtMost;
  double value = 0;  // in the unit of the quantity
};

struct Tallied {
  std::optional<Bounds> observed;  // nothing where nothing tells
  int64_t unknown_ns = 0;          // of the judged time: not known to count or not
  // Where it was furthest on the wrong side of the limit, CLOCK_MONOTONIC; nothing without a limit.
  std::optional<ObservedRange> worst;
};

class Tally {
 public:
  virtual ~Tally() = default;

  // The next part, in order; together they are the judged time.
  virtual void Add(const Part& part) = 0;
  // After the last part. Call once.
  virtual Tallied Finish() = 0;
};

// The share of a mean or longest quantity, or of gaps, that a part surely has, 0..1; nothing where
// that is not known:
//  * bands: 1 for its own, 0 for another; UNKNOWN, no verdict and no sample tell nothing. Without
//    counters UNKNOWN(no-counters) says that the vCPU was on a CPU, so surely not HALTED.
//  * unknown: 1 for UNKNOWN, 0 for a band; starved: where the verdict says so, or waiting was
//    measured; another share: as measured; gaps: 1 without a sample, known but for the time after
//    its VM ended.
std::optional<double> ShareOf(const Quantity& quantity, const Part& part);

// A tally of any quantity. Where bounds are estimates (percentiles), they lie on the true side of
// `limit`.
std::unique_ptr<Tally> NewTally(const Quantity& quantity, const std::optional<Limit>& limit);

// Of a percentile, in a file of its own.
std::unique_ptr<Tally> NewPercentileTally(const Quantity& quantity,
                                          const std::optional<Limit>& limit);

}  // namespace vcpulse::check

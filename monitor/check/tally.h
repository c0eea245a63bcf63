#pragma once

// Adds up one quantity of one vCPU (or the gaps of one VM) over the parts of the judged time. What
// is not known may have been anything: it goes into the bounds. Memory is bounded, whatever the
// number of ticks. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "monitor/check/coverage.h"
#include "monitor/check/expression.h"
#include "monitor/check/outcome.h"
#include "monitor/check/timetable.h"
#include "monitor/hotspots/symbols.h"

namespace vcpulse::check {

// A range of time and what was observed there.
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

// Which side of which value is asked about.
struct Limit {
  Comparison comparison = Comparison::kAtMost;
  std::optional<double> value;  // in the unit of the quantity; nothing: not known exactly
};

struct Tallied {
  std::optional<Bounds> observed;  // nothing where nothing tells
  int64_t unknown_ns = 0;          // of the judged time: not known to count or not
  int64_t ipc_bands_ns = 0;        // thereof judged by ipc-bands
  int64_t residency_ns = 0;        // thereof between the two ends of residency
  // Where it was furthest on the wrong side of the limit, CLOCK_MONOTONIC; nothing without a limit.
  std::optional<ObservedRange> worst;
};

class Tally {
 public:
  virtual ~Tally() = default;

  // The next part, in order; together they are the judged time.
  virtual void Add(const Part& part) = 0;
  // A window of hot addresses that lies in the judged time.
  virtual void Take(const v1::HotAddresses& /*window*/) {}
  // After the last part. Call once.
  virtual Tallied Finish() = 0;
};

// Why a share is not known exactly.
enum class Doubt : uint8_t {
  kNone,
  kNotKnown,   // UNKNOWN, no verdict or no sample: it may be anything
  kIpcBands,   // judged by ipc-bands, which is a hint
  kResidency,  // residency is known by a lower and an upper bound
};

struct Share {
  Bounds bounds;  // 0..1
  Doubt doubt = Doubt::kNone;

  bool operator==(const Share&) const = default;
};

// The share of a mean or longest quantity, or of gaps, that a part has:
//  * bands: 1 for its own, 0 for another; UNKNOWN, no verdict and no sample tell nothing. Without
//    counters UNKNOWN(no-counters) says that the vCPU was on a CPU, so surely not HALTED.
//  * unknown: 1 for UNKNOWN, 0 for a band. What ipc-bands calls SPINNING, PRODUCTIVE or UNKNOWN may
//    be each of them, unless the quantity is by_ipc_bands.
//  * starved: where the verdict says so, or waiting was measured; residency: between its ends;
//    another share: as measured; gaps: 1 without a sample, known but for the time after its VM
//    ended, or without a vCPU that could not be opened.
Share ShareOf(const Quantity& quantity, const Part& part);

// A tally of any quantity but kHot. Percentiles are known to 0.6 %: their bounds hold the truth,
// and lie on the true side of `limit` where that has a value.
std::unique_ptr<Tally> NewTally(const Quantity& quantity, const std::optional<Limit>& limit);

// Of kHot, by the names that `symbols` has, which must outlive it. A kernel's address without a
// name may be in any function; one in user mode is in none. The bounds are those of 95 % besides.
std::unique_ptr<Tally> NewHotTally(const Quantity& quantity, const hotspots::Symbols& symbols);

// Of a percentile.
std::unique_ptr<Tally> NewPercentileTally(const Quantity& quantity,
                                          const std::optional<Limit>& limit);

}  // namespace vcpulse::check

#pragma once

// monitor/check judges a timeline against expectations. Expressions are parsed here into plain
// data, markers become phases, ticks become tallies, and tallies become outcomes by interval
// arithmetic: what is UNKNOWN or missing may have been anything. All of it is pure but for
// CheckTimeline, which reads the file. docs/harness.md tells users what each word means.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/metric/metric.h"

namespace vcpulse::check {

using metric::Metric;

// What is observed of a vCPU, or of a VM.
struct Quantity {
  enum class Kind : uint8_t {
    kMean,        // of a share over the time, 0..1
    kLongest,     // the longest uninterrupted run of a band or of starved, ns
    kPercentile,  // of a number over the ticks that are not HALTED, weighted by their time
    kGaps,        // of a VM: the share of the time in which samples are missing, 0..1
    kHot,         // of hot addresses: the share of the samples in functions of a name, 0..1
  };

  Kind kind = Kind::kMean;
  Metric metric = Metric::kHalted;  // of all but kGaps and kHot
  double percentile = 0;            // 1..99
  // Whether the verdicts of ipc-bands are taken as they are. Else what they call SPINNING,
  // PRODUCTIVE or UNKNOWN may have been any of the three.
  bool by_ipc_bands = false;
  std::string functions{};  // of kHot: a name with *, ? and [...] as in a shell

  // Whether it can be told from hardware counters alone.
  bool NeedsCounters() const;
  // Whether by_ipc_bands makes a difference: spinning, productive, unknown and their longest().
  bool IsOfIpcBands() const;
  // Whether a sum over vCPUs is a quantity too: shares of a vCPU's time.
  bool AddsUp() const { return kind == Kind::kMean; }
  // One of a whole VM, not of a vCPU.
  bool IsOfVms() const { return kind == Kind::kGaps; }
  // In the unit of the metric, neither a share nor a time.
  bool IsNumber() const { return kind == Kind::kPercentile; }
  bool operator==(const Quantity&) const = default;
};

inline const Quantity kGaps = {.kind = Quantity::Kind::kGaps};

// A metric that can be asked for; nothing for any other word.
std::optional<Metric> FindAsked(std::string_view key);

// "productive", "ipc.p50", "longest(spinning)", "gaps", "hot("*spin*")", "spinning by ipc-bands".
std::string ToString(const Quantity& quantity);

// Parses that. Errors: InvalidArgument, as of ParseExpectation.
absl::StatusOr<Quantity> ParseQuantity(std::string_view text);

enum class Comparison : uint8_t { kBelow, kAtMost, kAtLeast, kAbove, kEqual };

std::string_view ToString(Comparison comparison);  // "<", "<=", ">=", ">", "=="

// How those whom an expectation is about make one outcome.
enum class Quantifier : uint8_t {
  kEach,  // each must satisfy it
  kAny,   // one suffices
  kSum,   // their shares are added up, 1 being all of the time of one vCPU
};

std::string_view ToString(Quantifier quantifier);  // "each", "any", "sum"

// Indexes of vCPUs, both ends inclusive.
struct IndexRange {
  uint32_t first = 0;
  uint32_t last = 0;

  bool operator==(const IndexRange&) const = default;
};

// Whom an expectation is about.
struct Selector {
  std::optional<std::string> vm;  // name, UUID, PID or number; nothing: each VM
  std::vector<IndexRange> vcpus;  // empty: each vCPU

  bool operator==(const Selector&) const = default;
};

struct Expectation {
  std::string text;  // as it was given, without spaces around it
  Quantifier quantifier = Quantifier::kEach;
  Selector selector;
  std::optional<std::string> phase;  // nothing: that of the options
  Quantity quantity;
  Comparison comparison = Comparison::kAtMost;
  double limit = 0;  // in the unit of the quantity; not negative without a baseline
  // The same quantity in the baseline, times this, is added to `limit`. 0: no baseline.
  double baseline_factor = 0;

  bool UsesBaseline() const { return baseline_factor > 0; }
  bool operator==(const Expectation&) const = default;
};

// Parses one expectation:
//   [each|any|sum] [vm=NAME|"NAME"|*] [vcpu=*|N|N-M[,...]] [phase=NAME|"NAME"] :
//       QUANTITY <|<=|==|>=|> LIMIT
// The selector and its colon may be left out (each VM, each vCPU), but not after any or sum; gaps
// take no vcpu=. LIMIT of a share is a percentage ("80%", of a sum also more than 100%), of IPC a
// number, of longest() a duration ("200ms", "1.5s"); or it is relative to a baseline: "baseline",
// "baseline * 0.95", "baseline - 5pt" (percentage points of a share; else in the quantity's unit).
// After a QUANTITY of a band other than halted, "by ipc-bands" takes the verdicts of that
// classifier as they are. Spaces are free between words. Pure. Errors: InvalidArgument, one line
// that begins with "column N: " (from 1, in bytes) and says what was found there and what is
// allowed.
absl::StatusOr<Expectation> ParseExpectation(std::string_view text);

// Parses the text of an expect file: one expectation per line; empty lines and what follows a '#'
// at the start of a word are ignored. Pure. Errors: InvalidArgument, one line: "LINE:COLUMN: ...",
// both from 1, or that there is no expectation at all.
absl::StatusOr<std::vector<Expectation>> ExpectationsFromText(std::string_view text);

}  // namespace vcpulse::check

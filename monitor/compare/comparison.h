#pragma once

// What a comparison found, as every renderer of it reads it. Plain data.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/check/expression.h"
#include "monitor/check/outcome.h"
#include "monitor/compare/bootstrap.h"
#include "monitor/metric/metric.h"

namespace vcpulse::compare {

// Of `compare --fail-if`: the difference B - A is too much where it is on that side of the limit.
struct Limit {
  std::string text;                  // as it was given, without spaces around it
  check::Selector selector;          // of VMs and vCPUs, each on its own
  std::optional<std::string> phase;  // nothing: each phase
  metric::Metric metric = metric::Metric::kHalted;
  bool above = true;      // too much is above the limit; else below
  bool or_equal = false;  // and the limit itself
  double value = 0;       // in the unit of the quantity; where relative, a share of A's value
  bool relative = false;

  bool operator==(const Limit&) const = default;
};

// Parses one limit:
//   [vm=NAME|"NAME"|*] [vcpu=*|N|N-M[,...]] [phase=NAME|"NAME"|*] : QUANTITY <|<=|>=|> CHANGE
// What stands before the colon may be left out, with it. QUANTITY is a metric that can be asked for
// (metric.h). CHANGE has a sign: +5pt are percentage points (of a share), -10% is relative to A's
// value, -0.2 is of a number, such as ipc. Pure. Errors: InvalidArgument, one line that begins with
// "column N: " (from 1, in bytes).
absl::StatusOr<Limit> ParseLimit(std::string_view text);

using metric::Metric;

// One of the recordings. Texts are as the timeline has them, empty where it does not say.
struct Described {
  std::string label;  // "A", or "A2" where a side has several
  std::string file;   // as given; "standard input" for -
  std::string host_name;
  std::string kernel_release;
  std::string cpu_model;
  std::optional<int64_t> start_realtime_ns;  // since 1970
  int64_t duration_ns = 0;
  uint64_t interval_ns = 0;
  std::string classifiers;  // that judged the compared time: "evidence, ipc-bands"
  std::string profile;
  std::string residency_method;
  std::string degraded;  // no hardware counter was read: of whom, and why; empty: all were
  std::string loss;      // what of it could not be read, for people; empty: nothing
};

// What one side says of a quantity.
struct Seen {
  std::optional<double> value;  // mean of its runs; nothing where it was not measured
  size_t runs = 0;              // in which it was measured
  uint64_t ticks = 0;
  int64_t length_ns = 0;            // of these ticks
  std::optional<int64_t> block_ns;  // length of a block of the bootstrap; one run per side only
  std::optional<double> blocks;     // how many of them the value rests on
};

// By falling precedence in the order of a table.
enum class Verdict : uint8_t {
  kDiffers,       // after all comparisons were allowed for, and not slight
  kSlight,        // told apart, but by less than runs of one guest may differ
  kMaybe,         // its own interval excludes 0; with so many comparisons that may be chance
  kNotToldApart,  // no proof that both are the same
  kUntold,        // not measured in both, or too little
};

std::string_view ToString(
    Verdict verdict);  // "differs", "slight", "maybe", "same?", "insufficient-data"

// One quantity of one vCPU in one phase.
struct Row {
  std::string vm;  // its name in A
  uint32_t vcpu = 0;
  std::optional<std::string> phase;  // nothing: the whole recording
  Metric metric = Metric::kHalted;
  Seen a;
  Seen b;
  std::optional<double> difference;  // B - A
  std::optional<Contrast> contrast;  // nothing where there is too little to judge by
  std::optional<double> chance;      // of a difference as large, were there none
  std::optional<double> adjusted;    // the same over all rows, by Holm
  Verdict verdict = Verdict::kUntold;
};

// A limit held against one row.
struct LimitFinding {
  std::string subject;  // "VM web vCPU 2", with the phase
  check::Outcome outcome = check::Outcome::kInconclusive;
  std::string reason;  // one line, without a full stop
};

struct JudgedLimit {
  Limit limit;
  check::Outcome outcome = check::Outcome::kSkip;
  std::vector<LimitFinding> findings;  // at least one
};

struct Comparison {
  std::vector<Described> a;  // at least one per side, in the order given
  std::vector<Described> b;
  bool between_runs = false;          // the intervals hold the variance between runs
  std::vector<std::string> warnings;  // why a difference may come from elsewhere
  std::vector<std::string> notes;     // what was not compared, what was lost
  std::vector<std::string> phases;    // that were compared; empty: the whole recordings
  std::vector<Row> rows;              // by effect
  size_t tests = 0;                   // rows with an interval
  std::vector<JudgedLimit> limits;    // in the order given
  check::Outcome outcome = check::Outcome::kSkip;  // of the limits
};

}  // namespace vcpulse::compare

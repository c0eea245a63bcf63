#pragma once

// From numbers to outcomes: comparisons of intervals, and whether there is enough to judge by.
// Pure.

#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/check/expression.h"

namespace vcpulse::check {

// Of an expectation, or of several (Worst).
enum class Outcome : uint8_t { kSkip = 0, kPass = 1, kInconclusive = 2, kFail = 3 };

std::string_view ToString(Outcome outcome);  // "SKIP", "PASS", "INCONCLUSIVE", "FAIL"

// The outcome of several: FAIL, else INCONCLUSIVE, else SKIP, else PASS; with `allow_skip` a PASS
// goes before SKIP. kSkip where there is none.
Outcome Worst(std::span<const Outcome> outcomes, bool allow_skip = false);

// The same of a range of structs that have one.
template <typename Range>
Outcome WorstOf(const Range& range, bool allow_skip = false) {
  std::vector<Outcome> outcomes;
  outcomes.reserve(std::ranges::size(range));
  for (const auto& one : range) outcomes.push_back(one.outcome);
  return Worst(outcomes, allow_skip);
}

// A quantity of which some is not known lies between the two: `low` where none of the unknown time
// counts for it, `high` where all of it does. In the unit of the quantity; high may be infinite.
struct Bounds {
  double low = 0;
  double high = 0;

  bool operator==(const Bounds&) const = default;
};

// The time in which a quantity was furthest on the wrong side, for people who look for the cause.
struct WorstSpan {
  int64_t from_ns = 0;  // after the recording's start
  int64_t to_ns = 0;
  double observed = 0;  // there, in the unit of the quantity

  bool operator==(const WorstSpan&) const = default;
};

// One expectation on one of those it is about, or on all of them together (any, sum).
struct Finding {
  // "VM web vCPU 2", "VM web"; "vm=web" where nothing fits; "any vcpu=*", "sum vm=web"
  std::string subject;
  // Of any: the one that decided, "VM web vCPU 2". Of sum: how many, "4 vCPUs". Else empty.
  std::string of;
  std::string vm;                // name of the VM; empty where nothing fits, and of a sum
  std::optional<uint32_t> vcpu;  // nothing for gaps, where nothing fits, and of a sum
  Outcome outcome = Outcome::kSkip;
  std::optional<Bounds> observed;  // nothing where nothing was measured
  uint64_t ticks = 0;              // measured in the time that was judged
  int64_t judged_ns = 0;           // wall time that was judged
  int64_t unknown_ns = 0;  // thereof not known to count or not: UNKNOWN, doubtful, or no sample
  std::optional<WorstSpan> worst;  // of a FAIL
  // What it was held against where that is relative to a baseline; nothing also where the baseline
  // does not say.
  std::optional<Bounds> limit;
  std::string reason;  // one line, without a full stop; empty for PASS

  bool operator==(const Finding&) const = default;
};

// The time that an expectation is about.
struct JudgedTime {
  std::optional<std::string> phase;  // nothing: the whole recording
  uint64_t spans = 0;                // how often it came; 1 without a phase
  int64_t judged_ns = 0;             // wall time of these spans, after --skip-first

  bool operator==(const JudgedTime&) const = default;
};

struct Judged {
  Expectation expectation;
  Outcome outcome = Outcome::kSkip;
  std::vector<Finding> findings;   // at least one; of any and sum one
  std::optional<JudgedTime> time;  // of an expectation with a phase; nothing: that of the result
};

// The time is that of expectations without a phase of their own.
struct Result : JudgedTime {
  Outcome outcome = Outcome::kSkip;
  std::vector<Judged> judged;  // in the order of the expectations

  // What was judged, for people.
  std::string host_name;
  std::optional<int64_t> start_realtime_ns;  // since 1970; nothing without a clock snapshot
  int64_t duration_ns = 0;                   // of the recording
  std::optional<std::string> baseline;       // its file, as given
  std::string degraded;                      // no hardware counter was read: of whom, and why
  std::vector<std::string> phases;           // all there are, in the order of their first marker
  std::vector<std::string> notes;            // what makes numbers doubtful: damage, contention, ...
};

// Whether `value` satisfies the comparison with `limit`.
bool Satisfies(double value, Comparison comparison, double limit);

// Whether the comparison sets an upper limit, so that high values are on the wrong side.
bool IsUpperLimit(Comparison comparison);

// kPass where every value of `bounds` satisfies the comparison with every value of `limit`, kFail
// where none does with any, else kInconclusive.
Outcome JudgeBounds(const Bounds& bounds, Comparison comparison, const Bounds& limit);

// How much there is to judge by.
struct Support {
  uint64_t ticks = 0;       // measured
  int64_t judged_ns = 0;    // wall time to be judged
  int64_t measured_ns = 0;  // thereof in these ticks
};

// Why an outcome is what it is.
enum class Why : uint8_t {
  kBounds,          // what was observed, held against the limit
  kNoCounters,      // the quantity needs them, and none was read
  kNothingToJudge,  // no time
  kTooFewTicks,
  kTooLittleMeasured,
  kNothingObserved,  // ticks, but none that tells of the quantity
  kNotSampled,       // no window of hot addresses
  kNoLimit,          // enough was observed, but the baseline does not say what to hold it against
};

struct Decision {
  Outcome outcome = Outcome::kInconclusive;
  Why why = Why::kBounds;

  bool operator==(const Decision&) const = default;
};

// What is asked of a subject, and what is enough to answer.
struct Question {
  Quantity quantity;
  Comparison comparison = Comparison::kAtMost;
  std::optional<Bounds> limit;  // nothing where the baseline does not say
  uint64_t min_ticks = 0;
  double min_measured = 0;  // share of the judged time
  std::string no_limit{};   // why there is none
  std::string wanted{};     // the limit of a baseline, as it was given: "baseline - 5pt"
};

// The outcome for one subject; `degraded`: in all of the time no hardware counter was read. Gaps
// are what is not measured: little of it is no excuse for them, but few ticks are no proof either
// that there are none.
Decision Decide(const Question& question, const std::optional<Bounds>& observed,
                const Support& support, bool degraded);

}  // namespace vcpulse::check

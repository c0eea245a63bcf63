#pragma once

// From intervals to words: what differs among many comparisons, and limits. Pure.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "monitor/compare/comparison.h"

namespace vcpulse::compare {

// A smaller difference is slight even where it is sure: two runs of one guest differ by as much,
// which one recording of each cannot show; and it hardly matters.
inline constexpr double kLeastShare = 0.01;
inline constexpr double kLeastChange = 0.01;  // of a number, of A's value

// Chances of error as they are among all of these: Holm, "A simple sequentially rejective multiple
// test procedure" (1979). It holds however the comparisons hang together.
std::vector<double> HolmAdjusted(std::span<const double> chances);

// Fills in adjusted, verdict and tests, and sorts the rows by effect.
void JudgeRows(Comparison& comparison);

// One limit held against one row, before others of its kind are allowed for.
struct Held {
  LimitFinding finding;
  std::optional<double> chance;  // of an observation as bad, were the truth just at the limit
  bool surely_within = false;    // all of the 95 % interval is
};

// Shares of UNKNOWN time that may have been the band that a limit is about: 0 for what is no band.
struct Doubt {
  double a = 0;
  double b = 0;
};

// "VM web vCPU 2", with the phase.
std::string Subject(const Row& row);

// `beyond` is b - (1 + value) x a for a relative limit, else row.contrast; nothing where there is
// too little to judge by. What is in doubt speaks for neither side: a limit is exceeded, or kept,
// only where that holds whatever it was. `no_counters`: the quantity was not counted, as a
// recording was degraded.
Held HoldAgainst(const Limit& limit, const Row& row, const std::optional<Contrast>& beyond,
                 const Doubt& doubt, bool no_counters);

// Outcomes of one limit from all it was held against.
JudgedLimit Judge(const Limit& limit, std::vector<Held> held, bool allow_skip = false);

// What the limit comes to where the variance between runs is unknown: FAIL and PASS hold for these
// runs alone, so they become INCONCLUSIVE, and the reason says so.
void DoubtWithoutRuns(JudgedLimit& judged);

// "+9.9 pt", "+0.12 (+8.0 %)": a difference for people.
std::string ChangeText(const Row& row, double difference);
// "36.7%", "1.234"; "-" where there is none.
std::string ValueText(Metric metric, const std::optional<double>& value);

}  // namespace vcpulse::compare

#pragma once

// Results of a check made by hand, for the tests of what renders them.

#include <limits>
#include <string>
#include <utility>

#include "monitor/check/outcome.h"

namespace vcpulse::check {

inline Expectation Expect(std::string text, Quantity quantity, Comparison comparison,
                          double limit) {
  Expectation expectation;
  expectation.text = std::move(text);
  expectation.quantity = quantity;
  expectation.comparison = comparison;
  expectation.limit = limit;
  return expectation;
}

inline Expectation SpinningAtMost5Percent() {
  return Expect("vcpu=*: spinning <= 5%", {.metric = Metric::kSpinning}, Comparison::kAtMost, 0.05);
}

inline Expectation MedianIpc() {
  return Expect("vcpu=1: ipc.p50 >= 0.9",
                {.kind = Quantity::Kind::kPercentile, .metric = Metric::kIpc, .percentile = 50},
                Comparison::kAtLeast, 0.9);
}

inline Expectation LongestSpin() {
  return Expect("longest(spinning) <= 200ms",
                {.kind = Quantity::Kind::kLongest, .metric = Metric::kSpinning},
                Comparison::kAtMost, 200e6);
}

inline Finding Found(std::string subject, Outcome outcome, std::optional<Bounds> observed,
                     std::string reason = "") {
  Finding finding;
  finding.subject = std::move(subject);
  finding.vm = "web";
  finding.outcome = outcome;
  finding.observed = observed;
  finding.ticks = 180;
  finding.judged_ns = 18'000'000'000;
  finding.reason = std::move(reason);
  return finding;
}

// One expectation of each outcome, of the first also a finding of each.
inline Result EveryOutcome() {
  Finding failed =
      Found("VM web vCPU 2", Outcome::kFail, Bounds{0.12, 0.14},
            "spinning 12.0 % to 14.0 %, wanted <= 5 %; worst 100.0 % from 12.3 s to 13.4 s");
  failed.vcpu = 2;
  failed.unknown_ns = 360'000'000;
  failed.worst = WorstSpan{12'300'000'000, 13'400'000'000, 1.0};
  Result result;
  result.outcome = Outcome::kFail;
  result.judged = {
      {SpinningAtMost5Percent(),
       Outcome::kFail,
       {Found("VM web vCPU 0", Outcome::kPass, Bounds{0, 0.012}),
        Found("VM web vCPU 1", Outcome::kSkip, std::nullopt,
              "it needs hardware counters, and none was read"),
        failed,
        Found("VM web vCPU 3", Outcome::kInconclusive, Bounds{0.03, 0.08},
              "spinning 3.0 % to 8.0 %, wanted <= 5 %: 5.0 % of 18.0 s is not known")}},
      {MedianIpc(),
       Outcome::kInconclusive,
       {Found("VM web vCPU 1", Outcome::kInconclusive,
              Bounds{0.5, std::numeric_limits<double>::infinity()},
              "4 ticks measured in 400.0 ms, at least 10 are needed")}},
      {LongestSpin(),
       Outcome::kPass,
       {Found("VM web vCPU 0", Outcome::kPass, Bounds{1.2e8, 1.2e8})}},
      {Expect("productive >= 80%", {.metric = Metric::kProductive}, Comparison::kAtLeast, 0.8),
       Outcome::kSkip,
       {Found("VM web vCPU 0", Outcome::kSkip, std::nullopt,
              "it needs hardware counters, and none was read")}},
  };
  result.host_name = "host1";
  result.start_realtime_ns = 1'767'323'045'250'000'000;  // 2026-01-02 03:04:05.250 UTC
  result.duration_ns = 60'000'000'000;
  result.phase = "spin";
  result.spans = 2;
  result.judged_ns = 18'000'000'000;
  result.phases = {"boot", "spin"};
  result.notes = {"2 chunks were damaged"};
  return result;
}

// Text of outside origin at its worst, wherever a result has such text.
inline Result Hostile() {
  const std::string text = "a\x1b[2J|`<b>&\"'#\n\x01\xff]]>\xef\xbf\xbf";
  Result result = EveryOutcome();
  for (Judged& judged : result.judged) {
    judged.expectation.text = text;
    for (Finding& finding : judged.findings) {
      finding.subject = text;
      finding.vm = text;
      finding.reason = text;
    }
  }
  result.host_name = text;
  result.phase = text;
  result.phases = {text};
  result.notes = {text};
  return result;
}

// With nothing that may be absent.
inline Result BarelyKnown() {
  Result result;
  result.outcome = Outcome::kInconclusive;
  Finding finding;
  finding.subject = "vm=web";
  finding.outcome = Outcome::kInconclusive;
  finding.reason = "nothing fits";
  result.judged = {{SpinningAtMost5Percent(), Outcome::kInconclusive, {finding}}};
  result.phase = "work";
  return result;
}

}  // namespace vcpulse::check

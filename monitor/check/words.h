#pragma once

// How a result is said in words: the texts that every renderer for people shares. Pure. Texts of
// outside origin (names, expressions, reasons) come out as one line without control characters, in
// valid UTF-8.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/check/outcome.h"

namespace vcpulse::check {

// `text` on one line, without control characters, in valid UTF-8.
std::string Clean(std::string_view text);

// "spinning 0.0 % to 1.2 %", or "nothing measured".
std::string ObservedText(const Expectation& expectation, const Finding& finding);

// "<= 5 %", ">= 0.9", "<= 200ms"; of a baseline ">= 75.0 % (baseline - 5pt)".
std::string WantedText(const Expectation& expectation, const Finding& finding);

// "spinning 12.0 % to 14.0 %, wanted <= 5 %". The question has a limit.
std::string ComparingText(const Question& question, const Bounds& observed);

// A finding in one line: of a PASS what was observed (of any and sum also of whom), else its
// reason, which says also what was wanted and when it was worst.
std::string FindingText(const Expectation& expectation, const Finding& finding);

struct Counts {
  size_t all = 0;
  size_t failed = 0;
  size_t inconclusive = 0;
  size_t passed = 0;
  size_t skipped = 0;

  void Add(Outcome outcome);
};

// Of the expectations.
Counts CountExpectations(const Result& result);

// "FAIL: 2 of 5 expectations failed, 1 inconclusive".
std::string VerdictText(const Result& result);

// "run.vpt: host1, recorded 2026-01-02 03:04:05 UTC, 60.0 s". `file` is what a person calls it.
std::string RecordingText(const Result& result, std::string_view file);

// The times that expectations of a result are about, each once, in the order of the expectations.
std::vector<JudgedTime> TimesOf(const Result& result);

// "phase spin, 2 spans, 18.0 s", or that it never came.
std::string PartText(const JudgedTime& time, int64_t recording_ns);

// "12.3 %" of a part of some time.
std::string ShareText(int64_t part_ns, int64_t whole_ns);

// Values of a quantity in words, the same in every message and table. Pure.

// "12.3 %", "0.90", "200.0 ms": a digit behind the point (of IPC two), or as many as tell it
// from `limit`.
std::string ValueText(const Quantity& quantity, double value, double limit);

// "0.0 % to 1.2 %", one value where both are shown alike, "0.50 or more" where there is no end.
std::string BoundsText(const Quantity& quantity, const Bounds& bounds, double limit);

// What a limit that is relative to a baseline is, as it was given: "baseline - 5pt".
std::string BaselineText(const Expectation& expectation);

// A limit as people write it: "5 %", "0.9", "200ms".
std::string LimitText(const Quantity& quantity, double limit);

// "100.0 % from 12.3 s to 13.4 s", after the recording's start; to the millisecond where it is
// shorter than a second.
std::string WorstText(const Quantity& quantity, const WorstSpan& worst, double limit);

}  // namespace vcpulse::check

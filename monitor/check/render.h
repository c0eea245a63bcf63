#pragma once

#include <string>
#include <string_view>

#include "monitor/check/outcome.h"

namespace vcpulse::check {

struct TextOptions {
  bool colour = false;  // ANSI sequences, for a terminal
};

// The result for people: what was judged, each expectation with its findings, what makes numbers
// doubtful, and the verdict as the last line. Findings that did not pass come first, with
// their reason; the others say only what was observed. `file` is what a
// person calls the timeline. Pure.
std::string RenderText(const Result& result, std::string_view file,
                       const TextOptions& options = {});

// The result of a check as JSON, for programs. Stable: fields are added, never renamed. Units are
// in the names (_s seconds, _ns); times `from_s` and `to_s` are seconds after the recording's
// start. What was not measured is null, never 0. Every list is present, empty or not. An OUTCOME is
// "PASS", "FAIL", "INCONCLUSIVE" or "SKIP".
//
// clang-format off
// {
//   "outcome": OUTCOME,                // the exit code is made of it
//   "counts": {"expectations", "failed", "inconclusive", "passed", "skipped"},
//   "file": text,                      // as given; "standard input" for -
//   "baseline": text or null,          // likewise
//   "host_name": text or null,
//   "start": "2026-01-31T12:00:00.250Z" or null,
//   "duration_s": n,                   // of the recording
//   "phase": text or null,             // of expectations without phase=
//   "spans": n,                        // how often it came; 1 without a phase
//   "judged_s": n,                     // wall time of these spans, without what was to be skipped
//   "phases": [names],                 // all there are, in the order of their first marker
//   "expectations": [{                 // in the order given
//     "expectation": text,             // as given
//     "outcome": OUTCOME,              // the worst of the findings
//     "quantifier": "each" | "any" | "sum",
//     "phase": text or null, "spans": n, "judged_s": n,   // as above, of this one
//     "quantity": "productive" | "ipc.p50" | "longest(spinning)" | ...,
//     "unit": "share", "ns", or the key of a number, as "ipc",  // of limit and every observed; a share is 0..1
//     "comparison": "<" | "<=" | ">=" | ">" | "==",
//     "limit": n,
//     "baseline_factor": n or null,    // limit is added to this times the baseline's value
//     "findings": [{                   // one of each vCPU (of gaps: of each VM); of any and sum one
//       "subject": text,               // "VM web vCPU 2", "any vcpu=*"
//       "of": text or null,            // of any: who decided; of sum: how many were added up
//       "vm": name or null, "vcpu": n or null,   // null where nothing fits; vcpu also of gaps
//       "outcome": OUTCOME,
//       "observed": {"low": n,         // where none of the unknown time counts for it
//                    "high": n or null,          // where all of it does; null where it is open
//                    "open": bool                // high has no end
//                   } or null,
//       "limit": {"low", "high", "open"} or null,   // by the baseline; null also where that is unknown
//       "ticks": n,                    // measured in the time that was judged
//       "judged_s": n,                 // wall time that was judged
//       "unknown_s": n,                // thereof UNKNOWN, doubtful, or without a sample
//       "worst": {"from_s", "to_s", "observed"} or null,   // of a FAIL: when it was worst
//       "reason": text or null         // null of a PASS
//     }]
//   }],
//   "degraded": text or null,          // no hardware counter was read: of whom, and why
//   "notes": [texts]                   // what makes numbers doubtful
// }
// clang-format on

// The whole result as indented JSON with a final newline. Pure.
std::string RenderJson(const Result& result, std::string_view file);

// `text` as XML character data or attribute value: the five characters that mean something become
// references. What XML 1.0 cannot hold even as a reference (most control characters, U+FFFE and
// U+FFFF, bytes that are no UTF-8) becomes '?', and a tab or line end a blank. Pure.
std::string XmlText(std::string_view text);

// The result as JUnit XML with a test suite per phase: a test case per expectation and subject.
// FAIL is <failure>, INCONCLUSIVE <error>, SKIP <skipped>; times are the wall time that was judged,
// in seconds. The class name holds the phase, so that phases do not mix. Valid against Jenkins'
// schema (tests/data/junit). `file` is what a person calls the timeline. Pure.
std::string RenderJunit(const Result& result, std::string_view file);

// JUnit XML with one test case that is an <error>: nothing was judged, for this reason. Pure.
std::string RenderJunitError(std::string_view why);

// The result as KTAP, version 1 (Documentation/dev-tools/ktap.rst of Linux): a test per
// expectation with a subtest per subject. SKIP is "ok ... # SKIP", as kselftest prints it. KTAP has
// no word for INCONCLUSIVE: it is "not ok ... # ERROR", which says that the test could not be
// carried out, and is no pass for a reader that knows no directive either. Names hold no '#' (KTAP
// cannot quote it): '?' stands there. `file` is what a person calls the timeline. Pure.
std::string RenderKtap(const Result& result, std::string_view file);

// `text` on one line of Markdown as itself: every character that could mean something (also '|' of
// a table and '<' of HTML) gets a backslash. Pure.
std::string MarkdownText(std::string_view text);

// The result as GitHub's Markdown, for the step summary of a CI job: the verdict as heading, and
// a table per expectation. `file` is what a person calls the timeline. Pure.
std::string RenderMarkdown(const Result& result, std::string_view file);

}  // namespace vcpulse::check

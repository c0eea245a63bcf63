#pragma once

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
//   "host_name": text or null,
//   "start": "2026-01-31T12:00:00.250Z" or null,
//   "duration_s": n,                   // of the recording
//   "phase": text or null,             // that was asked for
//   "spans": n,                        // how often it came; 1 without a phase
//   "judged_s": n,                     // wall time of these spans, without what was to be skipped
//   "phases": [names],                 // all there are, in the order of their first marker
//   "expectations": [{                 // in the order given
//     "expectation": text,             // as given
//     "outcome": OUTCOME,              // the worst of the findings
//     "quantity": "productive" | "ipc.p50" | "longest(spinning)" | ...,
//     "unit": "share", "ns", or the key of a number, as "ipc",  // of limit and every observed; a share is 0..1
//     "comparison": "<" | "<=" | ">=" | ">",
//     "limit": n,
//     "findings": [{                   // one of each vCPU (of gaps: of each VM)
//       "subject": text,               // "VM web vCPU 2"
//       "vm": name or null, "vcpu": n or null,   // null where nothing fits; vcpu also of gaps
//       "outcome": OUTCOME,
//       "observed": {"low": n,         // where none of the unknown time counts for it
//                    "high": n or null,          // where all of it does; null where it is open
//                    "open": bool                // high has no end
//                   } or null,
//       "ticks": n,                    // measured in the time that was judged
//       "judged_s": n,                 // wall time that was judged
//       "unknown_s": n,                // thereof UNKNOWN, or without a sample
//       "worst": {"from_s", "to_s", "observed"} or null,   // of a FAIL: when it was worst
//       "reason": text or null         // null of a PASS
//     }]
//   }],
//   "notes": [texts]                   // what makes numbers doubtful
// }
// clang-format on

#include <string>
#include <string_view>

#include "monitor/check/result.h"

namespace vcpulse::check {

// The whole result as indented JSON with a final newline. Pure.
std::string RenderJson(const Result& result, std::string_view file);

}  // namespace vcpulse::check

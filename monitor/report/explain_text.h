#pragma once

#include <string>

#include "monitor/report/explain.h"

namespace vcpulse::report {

// Why a window was judged as it was, for people: what was measured, each comparison in order with
// its numbers, the rule that spoke (marked), the runner-up. Pure.
std::string RenderExplanation(const Explanation& explanation);

// The same for programs. Stable like the report's JSON (json_report.h): null is not measured, or of
// a tick without a verdict.
// clang-format off
// {
//   "vm": n, "vm_name": text, "pid": n or null, "epoch": n, "vcpu": n, "tick": n, "at_s": n,
//   "classifier": "evidence" | "ipc-bands", "profile": name,
//   "remark": text or null,       // what the timeline does not say of how it was judged
//   "window_ms": n or null, "verdict": VERDICT, "recorded": VERDICT, "same_as_recorded": bool,
//          // VERDICT: {"band": text or null (no verdict), "rule": text or null,
//          //           "raw_band", "raw_rule": likewise, before smoothing,
//          //           "confidence": n or null, "starved": bool or null}
//   "features": {"residency": n or null,
//                "residency_method": "ref-cycles" | "max-frequency" | "highest-rate" | null,
//                "enabled_share", "waiting_share", "counted_share": n or null,
//                "state": text or null,
//                "cycles", "ipc", "ipc_spread", "branch_share", "branch_misses_per_kcycle",
//                "cache_misses_per_kcycle", "pause_share": n or null},
//   "presence": [CONDITION],      // asked first, as far as needed
//          // CONDITION: {"feature": as in "features", or "enabled_over_residency",
//          //             "what": the same for people, "value": n or null,
//          //             "is": "<" | ">=" | "<=" | ">" | null (a fact),
//          //             "threshold": n or null (a fact), "holds": bool or null}
//   "decided_by_presence": bool or null,
//   "rules": [{"rule", "band", "outcome": "holds" | "fails" | "skipped", "confidence": n or null,
//              "conditions": [CONDITION]}],
//   "fired": index into rules or null, "runner_up": likewise,
//   "weak_below": n or null       // where the rule that fired was less sure than this
// }
// clang-format on
std::string RenderExplanationJson(const Explanation& explanation);

}  // namespace vcpulse::report

#pragma once

#include <string>

#include "monitor/report/explain.h"

namespace vcpulse::report {

// Why a window was judged as it was, for people: what was measured, each comparison in order with
// its numbers, the rule that spoke (marked), the runner-up. Pure.
std::string RenderExplanation(const Explanation& explanation);

// The same for programs. Stable like the report's JSON (json_report.h): null is not measured.
// {
//   "vm": n, "vm_name": text, "epoch": n, "vcpu": n, "tick": n, "at_s": n,
//   "classifier": "evidence" | "ipc-bands", "profile": name,
//   "window_ms": n, "verdict": VERDICT, "recorded": VERDICT, "same_as_recorded": bool,
//          // VERDICT: {"band", "rule", "raw_band", "raw_rule", "confidence", "starved"}
//   "features": {"residency", "residency_method", "enabled_share", "waiting_share",
//                "counted_share": n or null, "state": text or null,
//                and by name ("IPC", "branches per instruction", ...): n or null},
//   "presence": [CONDITION],      // asked first, as far as needed
//          // CONDITION: {"what", "value": n or null, "is": "<" | ">=" | "<=" | ">" | null (a
//          fact),
//          //             "threshold": n or null, "holds": bool or null}
//   "decided_by_presence": bool,
//   "rules": [{"rule", "band", "outcome": "holds" | "fails" | "skipped", "confidence": n or null,
//              "conditions": [CONDITION]}],
//   "fired": index into rules or null, "runner_up": likewise
// }
std::string RenderExplanationJson(const Explanation& explanation);

}  // namespace vcpulse::report

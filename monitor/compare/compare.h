#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/compare/comparison.h"

namespace vcpulse::compare {

struct CompareOptions {
  std::optional<std::string> phase;  // nothing: each phase that both have, else the whole
  std::optional<std::string> vm;     // name, UUID or PID; nothing: each
  std::vector<Limit> limits;
  bool allow_skip = false;  // a PASS beside a SKIP is a PASS, else a SKIP
};

// Compares two timelines, each read twice ("-" for one of them is standard input, kept in memory).
// The same files give the same numbers. Errors, naming the file: of timeline::ReadTimeline;
// InvalidArgument where a file holds two recordings or nothing, or both are standard input;
// NotFound where the phase or the VM is not in both.
absl::StatusOr<Comparison> CompareTimelines(const std::string& path_a, const std::string& path_b,
                                            const CompareOptions& options);

struct TextOptions {
  bool colour = false;  // ANSI sequences, for a terminal
};

// The comparison for people: both recordings, what makes differences doubtful, a table by effect,
// limits. Pure.
std::string RenderText(const Comparison& comparison, const TextOptions& options = {});

// A comparison as JSON, for programs. Stable: fields are added, never renamed. Units are in the
// names (_s seconds); shares are 0..1, IPC is instructions per cycle. What was not measured is
// null, never 0. Every list is present, empty or not.
//
// clang-format off
// {
//   "a": {"file", "host_name", "kernel_release", "cpu_model", "start", "duration_s", "interval_s",
//         "classifiers", "profile", "residency_method", "loss"},    // null where it does not say
//   "b": the same,
//   "warnings": [texts],      // settings that differ, so that numbers may differ for it
//   "notes": [texts],         // what was not compared, and why
//   "phases": [names],        // that were compared; empty: the whole recordings
//   "comparisons": n,         // rows with an interval; Holm's adjustment is over these
//   "rows": [{                // by effect
//     "vm": text, "vcpu": n, "phase": text or null,
//     "quantity": "halted", "spinning", "productive", "unknown", "starved", "residency" or "ipc",
//     "a": {"value": n or null, "ticks", "measured_s", "block_s": n or null, "blocks": n or null},
//     "b": the same,
//     "difference": n or null,                     // b - a
//     "low": n or null, "high": n or null,         // its 95 % interval
//     "p": n or null, "p_adjusted": n or null,     // of a difference as large by chance
//     "verdict": "differs", "slight", "maybe", "not-told-apart" or "untold"
//   }],
//   "outcome": OUTCOME or null,                    // of all limits; null without --fail-if
//   "limits": [{"limit": text, "outcome": OUTCOME,
//               "findings": [{"subject": text, "outcome": OUTCOME, "reason": text}]}]
// }
// clang-format on
// An OUTCOME is "PASS", "FAIL", "INCONCLUSIVE" or "SKIP".

// Pure.
std::string RenderJson(const Comparison& comparison);

}  // namespace vcpulse::compare

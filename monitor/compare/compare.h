#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/compare/comparison.h"

namespace vcpulse::compare {

struct CompareOptions {
  std::optional<std::string> phase;  // nothing: each phase that both have, else the whole
  bool whole = false;                // the whole recordings, whatever phases they have
  std::optional<std::string> vm;     // name, UUID, PID or number; nothing: each
  std::vector<Limit> limits;
  bool allow_skip = false;  // a PASS beside a SKIP is a PASS, else a SKIP
  // Limits may pass and fail with one recording per side, although another run may differ by more.
  bool single_run = false;
};

// Compares the recordings `before` (A) with those `after` (B): one per side, or at least two per
// side, which are then one observation each. Each is read twice ("-" for one of them is standard
// input, kept in memory). The same files give the same numbers. Errors, naming the file: of
// timeline::ReadTimeline; InvalidArgument where a file holds two recordings or nothing, two of
// several are the same recording, two are standard input, or one side alone has one recording;
// NotFound where the phase or the VM is not in each.
absl::StatusOr<Comparison> CompareTimelines(std::span<const std::string> before,
                                            std::span<const std::string> after,
                                            const CompareOptions& options);

struct TextOptions {
  bool colour = false;  // ANSI sequences, for a terminal
};

// The comparison for people: the recordings, what makes differences doubtful, a table by effect,
// limits. Pure.
std::string RenderText(const Comparison& comparison, const TextOptions& options = {});

// A comparison as JSON, for programs. Stable: fields are added, never renamed. Units are in the
// names (_s seconds); shares are 0..1, IPC is instructions per cycle. What was not measured is
// null, never 0. Every list is present, empty or not.
//
// clang-format off
// {
//   "a": {"label", "file", "host_name", "kernel_release", "cpu_model", "start", "duration_s", "interval_s",
//         "classifiers", "profile", "residency_method", "degraded", "loss"},  // null where it does not say
//   "b": the same,            // of several per side: the first
//   "recordings": {"a": [as "a"], "b": [the same]},  // all of them
//   "between_run_variance": true or false,           // the intervals hold it; false: it is unknown
//   "warnings": [texts],      // settings that differ, so that numbers may differ for it
//   "notes": [texts],         // what was not compared, and why
//   "phases": [names],        // that were compared; empty: the whole recordings
//   "tested": n,              // rows with an interval; Holm's adjustment is over these
//   "rows": [{                // by effect
//     "vm": text, "vcpu": n, "phase": text or null,
//     "quantity": key,              // of a metric, such as "halted" or "ipc"
//     "a": {"value": n or null, "runs", "ticks", "measured_s", "block_s": n or null,
//           "blocks": n or null},                  // value: mean of the runs that measured it
//     "b": the same,
//     "difference": n or null,                     // b - a
//     "low": n or null, "high": n or null,         // its 95 % interval
//     "p": n or null, "p_adjusted": n or null,     // of a difference as large by chance
//     "verdict": "differs", "slight", "maybe", "no-difference-found" or "insufficient-data"
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

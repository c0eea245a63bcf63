#pragma once

// The report as JSON, for programs. Stable: fields are added, never renamed. Units are in the names
// (_s seconds, _ms, _ns, _hz); shares are 0..1. What was not measured is null, never 0. Times
// `t_s`, `first_s`, `start_s` are seconds after the recording's start. Every list is present, empty
// or not.
//
// clang-format off
// {
//   "session": {                       // null where the session record was lost
//     "stream_id": hex, "tool_version": text,
//     "host_name", "boot_id", "kernel_release", "machine", "cpu_model": text or null,
//     "online_cpus": n or null,        // null, these six: of an imported timeline
//     "agent_id": text or null,        // what the host is called among many (record --agent-id)
//     "labels": {key: text},           // record --label
//     "start": "2026-01-31T12:00:00.250Z" or null, "start_mono_ns": n or null,
//     "duration_s": n,                 // from the start (or --from) to the last record read
//     "from_s": n or null, "to_s": n or null,      // the range asked for
//     "phase": name or null,           // the phase asked for; duration_s is that of its spans
//     "phase_spans": n or null,        // how often it came
//     "interval_ms": n, "verdict_window_ms": n,
//     "residency_method": "ref-cycles" | "max-frequency" | "highest-rate" | "time-enabled" | null,
//     "tsc_hz": n or null, "max_hz": n or null,    // what residency divides by, known at the start
//     "max_hz_seen": n or null,        // max_hz, or the highest rate of cycles in the ticks
//     "core_pmus": [names],            // of a hybrid host; else empty
//     "further_max_hz": [n or null],   // max_hz of the core PMUs beyond the first
//     "further_max_hz_seen": [n or null],
//     "scheduling": "normal" | "fifo" | null, "timer_slack_ns": n or null,
//     "degraded_reason": text or null,
//     "classifier": {"name",           // asked for: "auto", "evidence" or "ipc-bands"
//                    "halted_enter", "halted_leave", "spinning_below", "productive_from",
//                    "profile": name or null},
//     "residency_blind_spot": text or null,        // what residency cannot see on this host
//     "derived_from": hex or null,     // stream_id of the timeline that `classify` made it of
//     "end_reason": "duration" | "signal" | "command" | "vm-end" | "import" | null
//   },
//   "degraded": text or null,          // no hardware counter was read: of whom, and why
//   "vms": [{
//     "vm": n, "name", "uuid": text or null, "pid": n or null,
//     "start_time_ticks": n or null,
//     "samples": n,                    // ticks at which all its vCPUs were read
//     "ended_s": n or null,            // when the VM ended, where it did
//     "epochs": [{"epoch": n, "start_s": n, "samples": n, "vcpus": n, "event_set": text,
//                 "classifier": "evidence" | "ipc-bands",   // that judged it
//                 "events": [names],
//                 "further_groups": [{"pmu": name or null, "events": [names]}],
//                                    // rotating groups (--multiplex), or those of other core PMUs
//                 "pmu": name or null, "core_pmus": n,   // the first so many groups add up
//                 "host_side_events": [names],           // they count the host too
//                 "absent_events": [{"event": name, "errno": n or null,
//                                    "errno_name": "ENOENT" or null, "reason": text}],
//                 "unopened_vcpus": [{"index": n, "tid": n or null, "errno": n or null,
//                                     "errno_name": text or null, "reason": text}],
//                 "notes": [texts]}],
//     "epochs_omitted": n,             // older ones, beyond what a report keeps
//     "vcpus": [{
//       "index": n, "kvm_id": n or null, "tid": n or null, "tids": [all it had],
//       "samples": n,                  // reads, the first of each epoch included
//       "measured_s": n,               // sum of the intervals between them
//       "judged_s": n,                 // thereof with a verdict: what the shares are shares of
//       "share": {"halted", "spinning", "productive", "unknown": n or null},   // sum 1
//       "unknown_reasons": {"between-bands": share of the judged time, ...},
//       "rules": {"blocked": share of the judged time, "ipc-low": ..., ...},
//       "starved_share": n or null,    // of the judged time in which waiting was measured
//       "confidence": n or null,       // mean, 0..1, over the time whose verdicts give one
//       "held_share": n or null,       // of the judged time: the band was held against that of the
//                                      // window alone, see docs/bands.md
//       "ipc": IPC or null,            // of all intervals counted and not HALTED
//       "ipc_by_band": {"spinning": IPC or null, "productive": ..., "unknown": ...},
//              // IPC: {"mean": sum of instructions / sum of cycles,
//              //       "p01", "p50", "p99": of the single ticks, "ticks": n}
//       "longest_spin": {"length_s", "from_s"} or null,      // SPINNING in one go
//       "longest_starved": the same,                         // starved in one go
//       "causes": [texts] or null,     // docs/statistics.md; null: not read
//       "without_counters": {...} or null,      // docs/statistics.md
//       "polling": {...} or null,      // likewise
//       "hotspots": {...} or null,     // docs/hotspots.md
//       "competitors": {...} or null,  // docs/competitors.md
//       "host_cpus": [n] or null,      // CPUs of the host on which readings (about one a second)
//                                      // found its thread; null, these three: not read
//       "host_cpu_shares": {"3": share of the readings, ...} or null,
//       "host_cpu_moves": [{"t_s": n, "cpu": n}] or null,     // the first reading, and each that
//                                      // found it elsewhere than the one before
//       "host_cpu_moves_omitted": n,   // later ones, beyond what a report keeps
//       "smt_neighbours": [{"vm", "vm_number", "vcpu", "share"}] or null,   // vCPUs that ran on other
//                                      // threads of its core, by share of the readings at which it
//                                      // ran; null: no SMT, not known, or it never ran
//       "smt_neighbours_omitted": n,   // times that others were there, beyond what a report keeps
//       METRIC: n or null,             // each metric of docs/metrics.md that has a key in this report:
//                                      // "residency", "run_share", "ghz", ...
//       "counts": {"cycles": n or null, ...},          // as counted
//       "counts_scaled": {"cycles": n or null, ...},   // x enabled / running of the event's group
//       "estimated": bool,             // the main group was on the PMU for part of the time only
//       "estimated_events": [names],   // those whose counts_scaled is an estimate, not a count
//       "counted_share": {"cycles": n or null, ...},   // running / enabled of the event's group
//       "counted_s": {"cycles": n, ...},               // intervals whose event set had the event
//       "ticks": {"halted": n, "spinning": n, "productive": n, "unknown": n, "none": n}
//              // none: a delta without a verdict (the window was not yet full)
//     }],
//     "gaps": [GAP]
//   }],
//   "gaps": [GAP],                     // those of every VM at once (tick missed, source lost)
//          // GAP: {"reason": "read-failed" | "tick-missed" | "queue-full" | "source-lost" |
//          //                 "not-opened" | "unspecified",
//          //       "vcpu": n or null, "errno": n or null, "errno_name": text or null,
//          //       "records": n, "ticks": n lost, "first_s": n, "last_s": n}
//   "life_cycle": [{"t_s", "vm": n or null, "kind": "vm-found" | "vm-ended" | "vcpus-changed" |
//                   "set-reduced" | "set-restored" | "vm-skipped" | "vm-paused" | "vm-resumed" |
//                   "recording-paused" | "recording-resumed" | "unspecified",
//                   "skip_reason": "no-kvm" | "no-vcpu" | "not-opened" or null,
//                   "detail", "pid": n or null, "name": text or null}],
//   "life_cycle_omitted": n,
//   "markers": [{"name", "t_ns": n}],  // in order, ns after the recording's start
//   "markers_omitted": n,              // older ones, beyond what a report keeps
//   "phases": [{"name", "spans": n, "length_s": n,     // from each marker of the name to the next
//               "vcpus": [{"vm": n, "vcpu": n, "measured_s": n, "judged_s": n, "share": as above,
//                          "ipc": n or null, METRIC: n or null}]}],
//   "phase_spans_omitted": n,          // spans of further phases, beyond what a report keeps
//   "own_cost": {
//     "ticks": n, "ticks_missed": n,
//          // null from here: no sample, or imported, as none of it is vcpulse's work
//     "tick_lateness_ns": {"p50", "p99", "max"} or null,
//     "read_ns": {"p50", "p99", "max"} or null,    // one vCPU's group, by read(2)
//     "skew_ns": {"p50", "p99", "max"} or null,    // of a sample: first read begun to last ended
//     "reader": "bpf", "read" or null,             // docs/reading.md
//     "no_bpf_reason": "..." or null,              // where it was tried
//     "kept_values": n,   // by BPF; not those of ticks that brought nothing new about a vCPU
//     "kept_age_ns": {"p50", "p99", "max"} or null,  // of those that are older than the tick
//     "cpu_s": n or null, "cpu_share": n or null,  // vcpulse's own processor time; of one CPU
//     "quantile_error": n              // relative error of every p01, p50, p99; never null
//   },
//   "damage": {
//     "chunks": n, "records": n,       // read
//     "lost_records": n, "damaged_chunks": n, "damaged_bytes": n,
//     "lost_before_first": n,          // of lost_records, those before the first one that is here
//     "told_losses": [{"first_sequence", "last_sequence", "reason"}],
//          // of lost_records, those that were lost on their way to a collector; reason is
//          // "spool-full", "spool-damaged", "too-large", "agent-busy", "not-held" or "unknown"
//     "regions": [{"offset", "bytes", "reason"}],
//     "unattributed_ticks": n,         // samples whose vCPU set is lost
//     "ended_in_order": bool or null   // false: killed, or still running; null: --until left it out
//   }
// }
// clang-format on

#include <string>

#include "monitor/report/report.h"

namespace vcpulse::report {

// The whole report as indented JSON with a final newline. Pure.
std::string RenderJson(const Report& report);

}  // namespace vcpulse::report

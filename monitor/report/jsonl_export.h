#pragma once

// A timeline as JSON lines, for dataframes: one object per vCPU and tick. Stable: keys are added,
// never renamed. What was not measured is null, never 0.
//
// clang-format off
// {"t_mono_ns": n,       // CLOCK_MONOTONIC: the middle of the read of this vCPU
//  "tick": n, "vm": n, "vm_name": text, "vcpu": n (index),
//  "interval_s": n,      // since its read before; everything below is of this interval
//  EVENT: n or null,     // each event asked for, by perf's name: how often it was counted. null:
//                        // not counted, or its group was never on the PMU. Core PMUs add up.
//  "counted_share": {EVENT: n or null},   // only where groups take turns (record --multiplex):
//                        // time running / enabled of those beyond the first, whose counts are of
//                        // so much of the time
//  "time_enabled_ns": n, "time_running_ns": n,  // of the first group; running: of all core PMUs
//  "run_ns": n or null, "run_delay_ns": n or null,      // schedstat
//  "state": "blocked" | "runnable" | "stopped" | "exited" | "paused" | null (not read),
//  "residency": 0..1 or null, "ipc": n or null,         // of this interval alone
//  "band": "halted" | "spinning" | "productive" | "unknown" | null (no verdict yet),
//  "raw_band": likewise, before smoothing,
//  "rule": text or null, "confidence": 0..1 or null, "starved": bool or null}
// clang-format on
// The first sample of an epoch has nothing to be subtracted from and gives no row.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "monitor/reading/interval.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::report {

// Takes the entries of one stream in order; memory grows with the number of epochs alone.
class JsonlExport {
 public:
  using TextSink = std::function<absl::Status(const std::string&)>;

  // `sink` takes a line at a time, its line end included.
  explicit JsonlExport(TextSink sink) : sink_(std::move(sink)) {}

  // Errors: those of the sink; InvalidArgument where a second stream begins.
  absl::Status Add(const timeline::Entry& entry);

  // Samples that could not be used, as no vCPU set fits them.
  uint64_t unusable_ticks() const { return intervals_.unusable_ticks(); }

 private:
  absl::Status AddRow(const reading::Interval& interval);

  TextSink sink_;
  reading::IntervalReader intervals_;
};

}  // namespace vcpulse::report

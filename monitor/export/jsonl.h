#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "monitor/export/exporter.h"
#include "monitor/export/text_output.h"
#include "monitor/metric/interval.h"

namespace vcpulse::exporting {

// A timeline as JSON lines, for dataframes: one object per vCPU and tick. Stable: keys are added,
// never renamed. What was not measured is null, never 0. Markers, gaps and the life cycle of VMs
// are no rows. The first sample of an epoch has nothing to be subtracted from and gives no row.
//
// clang-format off
// {"t_mono_ns": n,       // CLOCK_MONOTONIC: the middle of the read of this vCPU
//  "t_wall_ns": n or null,  // the same since 1970, by the latest clock snapshot
//  "interval_s": n,      // since its read before, exact to the ns; what follows is of this interval
//  "tick": n,
//  "vm": n,              // number of the VM instance in this timeline; its labels and identity:
//  "vm_name": text, "vm_pid": n or null, "vm_start_time": n or null (clock ticks),
//  "vm_uuid": text or null,
//  "epoch": n, "vcpu": n (index), "tid": n or null, "kvm_id": n or null,
//  EVENT: n or null,     // each event asked for, by perf's name: how often it was counted. null:
//                        // not counted, or its group was never on the PMU. Core PMUs add up. A
//                        // name that is a key above or below has "event:" in front of it.
//  "counted_share": {EVENT: n or null},   // only where groups take turns (record --multiplex):
//                        // time running / enabled of those beyond the first, whose counts are of
//                        // so much of the time
//  "time_enabled_ns": n, "time_running_ns": n,  // of the first group; running: of all core PMUs
//  "run_ns": n or null, "run_delay_ns": n or null,      // schedstat
//  "state": "blocked" | "runnable" | "stopped" | "exited" | "paused" | null (not read),
//  METRIC: n or null,    // each metric that is in rows (docs/metrics.md): of this interval alone,
//                        // "residency", "ipc", ...
//  "band": "halted" | "spinning" | "productive" | "unknown" | null (no verdict yet),
//  "raw_band": likewise, before smoothing,
//  "rule": text or null, "confidence": 0..1 or null, "starved": bool or null}
// clang-format on
class JsonlExport final : public Exporter {
 public:
  explicit JsonlExport(Sink sink) : out_(std::move(sink)) {}

  absl::Status Add(const timeline::Entry& entry) override;
  absl::Status Flush() override { return out_.Flush(); }
  absl::Status Finish() override { return out_.Flush(); }
  uint64_t unusable_ticks() const override { return intervals_.unusable_ticks(); }

 private:
  // What is the same in each row of a vCPU or an event, as text.
  struct Prepared {
    std::vector<std::string> vcpus;   // ,"vm":1, ... by column
    std::vector<std::string> events;  // ,"cycles": in the order of Epoch::events
    bool in_turns = false;            // whether there are counted shares
  };

  static Prepared Prepare(const metric::Epoch& epoch);
  const Prepared& PreparedFor(const metric::Epoch& epoch);
  absl::Status AddRow(const metric::Interval& interval);
  void AddEvents(const metric::Interval& interval, const Prepared& prepared);
  void AddVerdict(const metric::Interval& interval);

  TextOutput out_;
  Clocks clocks_;
  metric::IntervalReader intervals_;
  std::unordered_map<const metric::Epoch*, Prepared> prepared_;
  const metric::Epoch* latest_ = nullptr;
  const Prepared* latest_prepared_ = nullptr;
};

}  // namespace vcpulse::exporting

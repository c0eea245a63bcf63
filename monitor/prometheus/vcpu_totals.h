#pragma once

// What a recording did so far, added up: values alone, for VcpuMetrics.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/metric/metric.h"
#include "monitor/prometheus/vcpu_metrics.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::prometheus {

// Of a vCPU, of a VM or of all VMs.
struct IntervalTotals {
  metric::Totals totals;
  // By metric::Metric, those of its counters; nothing until they are first measured.
  std::array<std::array<std::optional<double>, 2>, metric::kMetrics> counters{};
};

// vCPUs by what is read of them.
struct VcpuStates {
  uint64_t counters = 0;     // hardware counters
  uint64_t no_counters = 0;  // the scheduler's times alone: the recording is degraded
  uint64_t not_opened = 0;   // nothing
};

struct VmTotals {
  v1::VmInstance instance;
  std::optional<int64_t> ended_mono_ns;
  VcpuStates states;
  IntervalTotals sum;                        // from MetricsLevel::kVm on
  std::map<uint32_t, IntervalTotals> vcpus;  // by index; at MetricsLevel::kVcpu
};

struct GapTotals {
  uint64_t records = 0;
  uint64_t ticks = 0;
};

// Upper bounds of the buckets of the lateness of ticks, seconds; above the last there is one more.
inline constexpr std::array<double, 13> kLatenessBounds = {
    5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 1};

struct RecordingTotals {
  std::string version;  // of the tool
  std::string reader;   // of counters, "bpf" or "read"; empty: not said
  std::string agent;    // the host's id among many; empty: not said
  std::vector<std::pair<std::string, std::string>> labels;  // of the host
  uint64_t ticks = 0;
  std::array<uint64_t, kLatenessBounds.size() + 1> lateness{};  // ticks per bucket
  uint64_t lateness_ns = 0;
  std::map<v1::Gap::Reason, GapTotals> gaps;
  // Of all VMs, also of those that are not in `vms` any more. Added to with each interval: a sum
  // that is made of the VMs anew would go back when one leaves, if only by a rounding error.
  IntervalTotals sum;
  std::map<uint32_t, VmTotals> vms;  // by number
};

// The labels that tell a VM from any other: what a person calls it, and its PID; empty where that
// is not known (imported counters).
std::string VmLabel(const v1::VmInstance& instance);
std::string PidLabel(const v1::VmInstance& instance);

// Of all of them, in Prometheus's exposition format. Pure.
std::string TextOf(const RecordingTotals& totals, MetricsLevel level);

}  // namespace vcpulse::prometheus

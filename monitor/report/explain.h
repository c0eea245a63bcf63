#pragma once

// Finds the window of one vCPU that a person asks about, judges the timeline anew up to it, and
// says why it was judged as it was.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/core/verdict.h"
#include "monitor/metric/metric.h"
#include "monitor/metric/statistics.h"
#include "monitor/replay/recorded_settings.h"
#include "monitor/replay/rejudge.h"
#include "monitor/report/causes.h"
#include "monitor/report/reasons.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::report {

struct ExplainTarget {
  uint32_t vcpu = 0;                // its index
  std::optional<std::string> vm{};  // name, UUID, PID or number; not needed where there is one VM
  std::optional<int64_t> at_ns{};   // after the start: the tick nearest to it; else the last judged
};

struct Explanation {
  uint32_t vm = 0;
  std::string vm_name{};
  uint32_t vm_pid = 0;  // 0: not known
  uint32_t epoch = 0;
  uint32_t vcpu = 0;
  uint64_t tick = 0;
  int64_t at_ns = 0;  // after the start
  core::Classifier classifier = core::Classifier::kIpcBands;
  std::string profile{};
  std::string remark{};  // where the timeline does not say all of how it was judged
  std::optional<std::string> residency_method{};
  core::Features features{};
  core::Verdict verdict{};   // as judged now; Band::kNone: its window was not yet full
  core::Verdict recorded{};  // as the timeline says
  Reasons reasons{};         // empty without a verdict

  // What the scheduler and KVM counted over a time that has the window's end, or, where no later
  // reading came, over the last time before it, 2 s before at most. Nothing where nothing was read.
  // Where the thread ran (numa_remote, smt_shared) is none of it: one reading tells nothing.
  struct Counted {
    int64_t from_ns = 0;  // after the start
    int64_t to_ns = 0;
    std::vector<std::pair<metric::Metric, double>> values;  // of the metrics of readings
    std::vector<const Cause*> causes;                       // that hold over that time
  };
  std::optional<Counted> counted{};
};

// Takes the entries of one stream in order. Memory grows with the number of VMs and epochs. One
// thread.
class Explainer {
 public:
  explicit Explainer(ExplainTarget target) : target_(std::move(target)) {}

  // Errors: InvalidArgument where a second stream begins, the stream has no session, or says that
  // it was judged in a way that is not known.
  absl::Status Add(const timeline::Entry& entry);

  // After the last entry. InvalidArgument, one line that says what is allowed: several VMs that
  // might be meant, an unknown VM or vCPU, a time after the end, or nothing to explain.
  absl::StatusOr<Explanation> Finish() const;

  // Samples that could not be used, as no vCPU set fits them.
  uint64_t unusable_ticks() const { return unusable_ticks_; }

 private:
  using VmEpoch = std::pair<uint32_t, uint32_t>;

  // Of one epoch that has the vCPU.
  struct Column {
    size_t index = 0;
    core::Classifier classifier = core::Classifier::kIpcBands;
    bool by_ref_cycles = false;
    core::Band previous = core::Band::kNone;  // band before the tick that comes
    metric::StatisticsDelta read{};           // the latest of each
  };
  // What is kept of a tick.
  struct Moment {
    VmEpoch key;
    uint64_t tick = 0;
    int64_t wake_ns = 0;
    core::Features features;
    core::Verdict verdict;
    core::Verdict recorded;
    core::Band previous = core::Band::kNone;
    metric::StatisticsDelta read;  // before it, and over it where that came
  };

  // One VM instance: a VM that restarted is another one of the same name.
  struct Vm {
    v1::VmInstance instance;
    std::set<uint32_t> vcpus;  // their indexes
    std::optional<Moment> best;
  };
  using Vms = std::map<uint32_t, Vm>;  // by number

  absl::Status Start();
  void AddSet(const v1::VcpuSet& set);
  void AddTick(const timeline::TickEntry& tick);
  void AddStatistics(const v1::Statistics& record);
  std::optional<Explanation::Counted> CountedOf(const Moment& moment) const;
  bool IsBetter(const Moment& moment, const std::optional<Moment>& than) const;
  absl::StatusOr<uint32_t> FindVm() const;
  absl::Status CheckTarget(uint32_t number, const Vm& vm) const;

  ExplainTarget target_;
  std::optional<v1::Session> session_;
  std::optional<v1::Profile> kept_;
  replay::Settings settings_;
  std::optional<replay::Rejudge> rejudge_;
  Vms vms_;
  std::map<VmEpoch, Column> columns_;
  std::map<VmEpoch, v1::VcpuSet> sets_;  // of columns_
  metric::StatisticsReader statistics_;
  std::optional<int64_t> start_ns_;
  std::optional<int64_t> end_ns_;
  uint64_t unusable_ticks_ = 0;
};

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
//   "weak_below": n or null,      // where the rule that fired was less sure than this
//   "counted": null or {"from_s", "to_s", "values": {metric: n}, "causes": [names]}
//                                 // by the scheduler and KVM over that time (docs/statistics.md)
// }
// clang-format on
std::string RenderExplanationJson(const Explanation& explanation);

}  // namespace vcpulse::report

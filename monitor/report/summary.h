#pragma once

// monitor/report turns the records of a timeline into what people and programs read: a Summary
// (sums and quantiles, taken in one pass), rendered as text or JSON. No file, no clock, no terminal
// here: records in, text out. Memory grows with the number of VMs and vCPUs, never with the number
// of ticks. The rule of the house: what was not counted has no number.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "monitor/core/residency.h"
#include "monitor/core/verdict.h"
#include "monitor/hotspots/recorded_hotspots.h"
#include "monitor/metric/interval.h"
#include "monitor/metric/longest_stretch.h"
#include "monitor/metric/metric.h"
#include "monitor/reading/recorded_competitors.h"
#include "monitor/report/distribution.h"
#include "monitor/report/host_cpus.h"
#include "monitor/report/phase_totals.h"
#include "monitor/report/smt_neighbours.h"
#include "monitor/report/time_by_cause.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::report {

// IPC over some intervals.
struct IpcTotals {
  uint64_t cycles = 0;
  uint64_t instructions = 0;
  Distribution per_tick;

  // Sum of instructions / sum of cycles; nothing where no cycle was counted.
  std::optional<double> Mean() const;
};

// One event on one vCPU.
struct EventTotal {
  std::string event;  // perf's name
  uint64_t raw = 0;
  uint64_t time_enabled_ns = 0;
  uint64_t time_running_ns = 0;
  int64_t interval_ns = 0;    // the intervals whose event set had it
  bool on_many_pmus = false;  // summed over the core PMUs of a hybrid host
  // Of the epochs before the one that is being added: each epoch is scaled on its own, since its
  // groups had their own share of the PMU.
  double settled_scaled = 0;
  uint64_t settled_raw = 0;
  uint64_t settled_enabled_ns = 0;
  uint64_t settled_running_ns = 0;
  int64_t settled_interval_ns = 0;

  // An epoch begins: what came before it is scaled for good.
  void Settle();
  // What was counted, or nothing where nothing ever was: the event was in no event set, or its
  // group never ran on the PMU. (A thread off its CPU throughout is a valid 0.)
  std::optional<uint64_t> Raw() const;
  // The same extrapolated to the time enabled, as perf does it; equal to Raw() where exact.
  std::optional<double> Scaled() const;
  bool IsEstimate() const;
  double ScaledSinceSettled() const;
  // Whether its group was never on the PMU since the epoch began, though the thread ran.
  bool NeverRanSinceSettled() const;
  // interval_ns without what NeverRanSinceSettled.
  int64_t CountedNs() const;
  // Whether it was counted in less than all of that time.
  bool IsPartOf(double measured_ns) const { return static_cast<double>(CountedNs()) < measured_ns; }
  // Time running / time enabled of the group that holds it; nothing where the thread never ran.
  std::optional<double> RunningShare() const;
};

// One guest CPU over all epochs of its VM.
struct VcpuSummary {
  uint32_t index = 0;
  std::optional<uint32_t> kvm_id;
  std::vector<uint32_t> tids;  // that it had, in order; the oldest are forgotten beyond 16
  uint64_t samples = 0;
  metric::Totals totals;
  std::array<uint64_t, core::kBands> band_ticks{};
  std::array<int64_t, core::kRules> rule_ns{};
  IpcTotals ipc;  // of every interval counted and judged other than HALTED
  std::array<IpcTotals, core::kBands> ipc_by_band;
  std::vector<EventTotal> events;
  metric::LongestStretch spin;
  metric::LongestStretch starved;
  TimeByCause uncounted{UncountedNs, OnCpuNs};
  TimeByCause polling{PollingNs, OutsideNs};
  HostCpus host_cpus;
  SmtNeighbours smt;

  std::optional<double> Value(metric::Metric metric) const { return totals.Value(metric); }
  // Of the judged time; nothing where there is none.
  std::optional<double> RuleShare(core::Rule rule) const;
  // Nothing where the event was in no event set of this vCPU.
  const EventTotal* FindEvent(const std::string& name) const;
};

// One epoch of a VM and how the columns of its ticks are to be read.
struct EpochSummary {
  // Where the counts of one slot of one group go.
  struct Slot {
    size_t total = 0;  // which of vcpu->events
    // false where the same event on another core PMU brings the time enabled already.
    bool brings_time = true;
  };
  struct Column {
    VcpuSummary* vcpu = nullptr;            // in the VmSummary that holds this epoch
    std::vector<std::vector<Slot>> groups;  // the main one first
  };

  v1::VcpuSet set;
  uint64_t samples = 0;
  std::vector<Column> columns;
};

// Missing samples of one kind. The key is (reason, vCPU, errno).
using GapKey = std::tuple<v1::Gap::Reason, std::optional<uint32_t>, int32_t>;
struct GapTotal {
  uint64_t records = 0;
  uint64_t ticks = 0;
  int64_t first_mono_ns = 0;
  int64_t last_mono_ns = 0;
};
using GapTotals = std::map<GapKey, GapTotal>;

// One VM instance.
struct VmSummary {
  v1::VmInstance instance;
  uint64_t samples = 0;
  std::optional<int64_t> ended_mono_ns;
  std::map<uint32_t, EpochSummary> epochs;  // by number: the latest ones
  uint64_t epochs_omitted = 0;              // older ones
  std::map<uint32_t, VcpuSummary> vcpus;    // by index
  GapTotals gaps;
  // Of the latest reading: why no counts of KVM's were read; empty: they were. Nothing: there is no
  // reading at all.
  std::optional<std::string> kvm_missing;
};

// Some VMs of a summary.
using NumberedVm = std::pair<const uint32_t, VmSummary>;
using Vms = std::vector<const NumberedVm*>;

// Adds a vCPU of a set to `vm` and gives the places of its counts.
EpochSummary::Column ColumnOf(VmSummary& vm, const v1::Vcpu& member, const v1::VcpuSet& set);

// Adds what the groups of one vCPU counted in one interval to the totals of its events.
void AddEvents(const EpochSummary::Column& column, std::span<const core::VcpuDelta> groups);

// The events that any epoch asked for, counted or absent, each once.
std::vector<std::string> EventsAskedFor(const VmSummary& vm);

// What vcpulse itself cost, and how well it kept its ticks.
struct OwnCost {
  uint64_t ticks = 0;  // seen, whatever the number of VMs
  uint64_t ticks_missed = 0;
  Distribution lateness_ns;  // of each tick
  Distribution read_ns;      // of one vCPU's group, by read(2)
  Distribution skew_ns;      // first read begun to last read ended of one VM's sample
  // Where counters were read by BPF: how old the values were when the tick woke, of those that were
  // not of the tick itself, and how many values the kernel had kept at all.
  Distribution age_ns;
  uint64_t kept = 0;
};

// Takes the records of one stream in order. One thread.
class Summary {
 public:
  Summary() = default;
  Summary(const Summary&) = delete;  // columns point into it
  Summary& operator=(const Summary&) = delete;

  // Errors: InvalidArgument where a second stream begins (two timelines run together); those of
  // `also`, which is handed each interval that ends with this entry.
  absl::Status Add(const timeline::Entry& entry,
                   metric::IntervalReader::Sink also = metric::PassOver);

  const std::optional<v1::Session>& session() const { return intervals_.session(); }
  const std::map<uint32_t, VmSummary>& vms() const { return vms_; }  // by number
  const GapTotals& gaps() const { return gaps_; }                    // those of every VM at once
  const std::deque<v1::LifeCycle>& life_cycle() const { return life_cycle_; }
  uint64_t life_cycle_omitted() const { return life_cycle_omitted_; }
  // The latest ones, in order; a phase runs from its marker to the next.
  const std::deque<v1::Marker>& markers() const { return markers_; }
  uint64_t markers_omitted() const { return markers_omitted_; }
  const PhaseTotals& phases() const { return phases_; }
  // In place of them, those of another reading.
  void SetPhases(PhaseTotals phases) { phases_ = std::move(phases); }
  // What residency was divided by in the end: the highest rate seen may exceed the session's.
  std::span<const core::ResidencyBasis> residency_bases() const {
    return intervals_.residency_bases();
  }
  // An epoch counted cycles and no ref-cycles: its residency is by frequency in any case.
  bool residency_without_ref_cycles() const { return residency_without_ref_cycles_; }
  const hotspots::RecordedHotspots& hotspots() const { return hotspots_; }
  const reading::RecordedCompetitors& competitors() const { return competitors_; }
  const OwnCost& own_cost() const { return own_cost_; }
  const std::optional<v1::Summary>& end() const { return end_; }
  const std::optional<v1::ClockSnapshot>& clock() const { return clock_; }  // the first
  // Instants of the earliest and latest record, CLOCK_MONOTONIC.
  std::optional<int64_t> first_mono_ns() const { return first_mono_ns_; }
  std::optional<int64_t> last_mono_ns() const { return last_mono_ns_; }
  // Samples that could not be used, as no vCPU set fits them.
  uint64_t unattributed_ticks() const { return intervals_.unusable_ticks(); }

 private:
  void AddVcpuSet(const v1::VcpuSet& set);
  // Takes note of a sample; its intervals follow.
  void AddSample(const timeline::TickEntry& tick);
  void AddInterval(const metric::Interval& interval);
  void AddGap(const v1::Gap& gap);
  void AddLifeCycle(const v1::LifeCycle& change);
  void AddMarker(const v1::Marker& marker);
  // `previous`: of the same epoch; null where there is none.
  void AddCost(const core::Sample& sample, const core::Sample* previous);
  void SeeInstant(int64_t mono_ns);

  metric::IntervalReader intervals_;
  EpochSummary* sampled_ = nullptr;  // of the latest sample that fits its set
  bool residency_without_ref_cycles_ = false;
  std::map<uint32_t, VmSummary> vms_;
  GapTotals gaps_;
  std::deque<v1::LifeCycle> life_cycle_;
  uint64_t life_cycle_omitted_ = 0;
  std::deque<v1::Marker> markers_;
  uint64_t markers_omitted_ = 0;
  PhaseTotals phases_;
  hotspots::RecordedHotspots hotspots_;
  reading::RecordedCompetitors competitors_;
  OwnCost own_cost_;
  std::optional<uint64_t> last_tick_;
  std::optional<v1::Summary> end_;
  std::optional<v1::ClockSnapshot> clock_;
  std::optional<int64_t> first_mono_ns_;
  std::optional<int64_t> last_mono_ns_;
};

}  // namespace vcpulse::report

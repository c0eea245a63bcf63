#pragma once

// monitor/metric: per-vCPU metrics, the same for every reader. Here: one vCPU between two of its
// samples, as every reader of ticks needs it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "monitor/core/delta.h"
#include "monitor/core/event_slots.h"
#include "monitor/core/residency.h"
#include "monitor/core/sample.h"
#include "monitor/core/verdict.h"
#include "monitor/metric/statistics.h"
#include "monitor/timeline/entry.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::metric {

// Where the count of an event is in the samples of an epoch.
struct EventPlace {
  std::string name;      // perf's
  bool counted = false;  // else it was asked for and is absent
  size_t group = 0;      // 0 is the main one
  size_t slot = 0;
};

// The events that a set asked for, each once: by groups and slots, then those that are absent.
std::vector<EventPlace> EventPlacesOf(const v1::VcpuSet& set);

// An epoch, and how the columns of its ticks are to be read.
struct Epoch {
  v1::VcpuSet set;
  std::vector<EventPlace> events;  // of `set`
  core::EventSlots slots;
  size_t core_pmus = 1;  // the first so many groups add up
  size_t groups = 1;

  // No hardware counter is read.
  bool IsDegraded() const { return set.event_set() == "degraded"; }
};

// The verdict, where this program knows its values: a newer schema may have more of them.
inline core::Verdict WithinKnown(core::Verdict verdict) {
  const auto within = [](core::Band& band, core::Rule& rule) {
    if (static_cast<size_t>(band) >= core::kBands) band = core::Band::kNone;
    if (static_cast<size_t>(rule) >= core::kRules) rule = core::Rule::kNone;
  };
  within(verdict.band, verdict.rule);
  within(verdict.raw_band, verdict.raw_rule);
  return verdict;
}

// Where the read of a vCPU's counters was at its middle, CLOCK_MONOTONIC.
int64_t MiddleOf(const core::VcpuSample& sample);

// What a share surely lies between, both ends inclusive: 0..1.
struct ShareRange {
  double low = 0;
  double high = 0;

  bool operator==(const ShareRange&) const = default;
};

// What the cycles of guest code are divided by, as far as it is known by now.
class ResidencyScale {
 public:
  ResidencyScale() = default;
  ResidencyScale(v1::ResidencyMethod method, std::vector<core::ResidencyBasis> bases)
      : method_(method), bases_(std::move(bases)) {}

  // Learns from what each core PMU counted, so intervals come in the order of the records.
  void Observe(std::span<const core::VcpuDelta> pmus, const core::EventSlots& slots);

  std::optional<double> Of(std::span<const core::VcpuDelta> pmus,
                           const core::EventSlots& slots) const;
  std::optional<ShareRange> RangeOf(std::span<const core::VcpuDelta> pmus,
                                    const core::EventSlots& slots) const;
  std::span<const core::ResidencyBasis> bases() const { return bases_.bases(); }

 private:
  v1::ResidencyMethod method_ = v1::RESIDENCY_METHOD_UNSPECIFIED;
  core::ResidencyEstimator bases_{std::vector<core::ResidencyBasis>()};
};

// All of it is valid during the call that it is given to.
struct Interval {
  const Epoch& epoch;
  size_t column = 0;  // place of the vCPU in epoch.set
  uint64_t tick = 0;
  const core::VcpuSample& before;
  const core::VcpuSample& now;
  std::span<const core::VcpuDelta> groups;  // the main one first
  const core::VcpuDelta& delta;             // of all core PMUs together; its interval_ns is > 0
  const ResidencyScale& residency_scale;
  core::Verdict verdict;      // kNone: no verdict yet
  bool misses_ticks = false;  // ticks lie inside it whose samples are missing
  // What was read of it since the interval before: of about a second, not of this interval alone.
  // Null where nothing was.
  const StatisticsDelta* statistics = nullptr;

  const v1::Vcpu& Vcpu() const { return epoch.set.vcpus(static_cast<int>(column)); }
  uint32_t Vm() const { return epoch.set.vm(); }
  int64_t BeginNs() const { return EndNs() - delta.interval_ns; }  // CLOCK_MONOTONIC
  int64_t EndNs() const { return MiddleOf(now); }
  bool IsJudged() const { return verdict.band != core::Band::kNone; }
  std::span<const core::VcpuDelta> CorePmus() const {
    return groups.first(std::min(epoch.core_pmus, groups.size()));
  }
  std::optional<double> Residency() const {  // 0..1
    return residency_scale.Of(CorePmus(), epoch.slots);
  }
  // Of residency: one value where it comes from ref-cycles. Guest cycles per highest frequency give
  // the low end alone (none while no frequency is known but the highest rate seen), the time on a
  // CPU the high one. Nothing where residency is nothing.
  std::optional<ShareRange> ResidencyRange() const {
    return residency_scale.RangeOf(CorePmus(), epoch.slots);
  }
  // Whether waiting for a CPU is known: it was measured, or the verdict says so. Nothing where it
  // is not, or there is no verdict.
  std::optional<bool> Starved() const;

  struct Counted {
    std::optional<uint64_t> count;  // nothing: absent, or its group was never on the PMU
    // Time running / enabled of its group; nothing where the thread never ran.
    std::optional<double> share;
  };
  // Of one of epoch.events.
  Counted CountOf(const EventPlace& event) const;
  // Whether its group takes turns on the PMU with others (record --multiplex).
  bool InTurns(const EventPlace& event) const {
    return event.counted && event.group >= epoch.core_pmus;
  }
};

// For those who want none.
inline absl::Status PassOver(const Interval&) { return absl::OkStatus(); }

// All vCPUs of one sample, as a reader of files or a writer of records has them.
struct Tick {
  uint32_t vm = 0;
  uint32_t epoch = 0;
  const core::Sample& sample;
  const core::Sample* previous = nullptr;  // in the same epoch; nothing at its start
  std::span<const core::Verdict> verdicts{};
};

// Finds the intervals in the records of one stream, given in order. Memory grows with the number of
// epochs alone. One thread.
class IntervalReader {
 public:
  using Sink = absl::FunctionRef<absl::Status(const Interval&)>;

  IntervalReader() : deltas_(1) {}

  // Hands the intervals that end with this entry to `sink`, one per vCPU, where it is a tick; takes
  // note of sessions and sets. Errors: those of the sink; InvalidArgument where a second stream
  // begins.
  absl::Status Add(const timeline::Entry& entry, Sink sink);

  // The same, each on its own. Sessions and sets that are known already are passed over.
  absl::Status Add(const v1::Session& session);
  void Add(const v1::VcpuSet& set);
  void Add(const v1::Statistics& statistics);
  absl::Status Add(const Tick& tick, Sink sink);
  // No tick of this epoch comes any more: it is forgotten.
  void EndEpoch(uint32_t vm, uint32_t epoch) {
    epochs_.erase({vm, epoch});
    statistics_.EndEpoch(vm, epoch);
  }

  // Nothing before the first.
  const std::optional<v1::Session>& session() const { return session_; }
  // Null where no set came that fits the tick's sample. Valid until EndEpoch.
  const Epoch* EpochOf(const Tick& tick) const;
  // Samples that could not be used, as no vCPU set fits them.
  uint64_t unusable_ticks() const { return unusable_ticks_; }
  // What residency is divided by now, one per core PMU.
  std::span<const core::ResidencyBasis> residency_bases() const { return residency_scale_.bases(); }

 private:
  std::span<const core::VcpuDelta> Deltas(const Tick& tick, size_t column);

  std::optional<v1::Session> session_;
  ResidencyScale residency_scale_;
  std::map<std::pair<uint32_t, uint32_t>, Epoch> epochs_;  // by (vm, epoch)
  StatisticsReader statistics_;
  std::vector<core::VcpuDelta> deltas_;  // of one vCPU's groups
  uint64_t unusable_ticks_ = 0;
};

}  // namespace vcpulse::metric

#pragma once

// One vCPU between two of its samples, as every reader of ticks needs it.

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
#include "monitor/reading/event_places.h"
#include "monitor/timeline/entry.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::reading {

// The deltas of one vCPU's groups, the main one first. It keeps their memory.
class GroupDeltas {
 public:
  GroupDeltas() : deltas_(1) {}

  // Both samples are of one epoch, and have this vCPU. Valid until the next call.
  std::span<const core::VcpuDelta> Of(const core::Sample& earlier, const core::Sample& later,
                                      size_t vcpu);

 private:
  std::vector<core::VcpuDelta> deltas_;
};

// Of the groups on all core PMUs together; `pmus` is not empty.
core::VcpuDelta AddPmus(std::span<const core::VcpuDelta> pmus);

// Residency of each interval by the method of the session. One thread.
class ResidencyMeter {
 public:
  void Begin(const v1::Session& session);

  // Of the groups on all core PMUs together; learns from them, so intervals come in the order of
  // the records. Nothing where it is unknown.
  std::optional<double> Of(std::span<const core::VcpuDelta> pmus, const core::EventSlots& slots);

  // What residency is divided by now.
  std::span<const core::ResidencyBasis> bases() const { return estimator_.bases(); }

 private:
  bool by_time_enabled_ = false;
  core::ResidencyEstimator estimator_{std::vector<core::ResidencyBasis>()};
};

// The verdict, where this program knows its values: a newer schema may have more of them.
core::Verdict WithinKnown(core::Verdict verdict);

// Where the read of a vCPU's counters was at its middle, CLOCK_MONOTONIC.
int64_t MiddleOf(const core::VcpuSample& sample);

// An epoch, and how the columns of its ticks are to be read.
struct Epoch {
  v1::VcpuSet set;
  std::vector<EventPlace> events;  // that it asked for
  core::EventSlots slots;
  size_t core_pmus = 1;  // the first so many groups add up
  size_t groups = 1;
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
  std::optional<double> residency;          // 0..1
  core::Verdict verdict;                    // kNone: no verdict yet

  const v1::Vcpu& Vcpu() const { return epoch.set.vcpus(static_cast<int>(column)); }
  uint32_t Vm() const { return epoch.set.vm(); }
  int64_t BeginNs() const { return EndNs() - delta.interval_ns; }  // CLOCK_MONOTONIC
  int64_t EndNs() const { return MiddleOf(now); }
  // Instructions per cycle; nothing where no cycle was counted.
  std::optional<double> Ipc() const;

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

// Finds the intervals in the entries of one stream, given in order. Memory grows with the number of
// epochs alone. One thread.
class IntervalReader {
 public:
  using Sink = absl::FunctionRef<absl::Status(const Interval&)>;

  // Hands the intervals that end with this entry to `sink`, one per vCPU, where it is a tick; takes
  // note of sessions and sets. Errors: those of the sink; InvalidArgument where a second stream
  // begins.
  absl::Status Add(const timeline::Entry& entry, Sink sink);

  // Nothing before the first.
  const std::optional<v1::Session>& session() const { return session_; }
  // Null where no such set came.
  const Epoch* Find(uint32_t vm, uint32_t epoch) const;
  // Samples that could not be used, as no vCPU set fits them.
  uint64_t unusable_ticks() const { return unusable_ticks_; }

 private:
  absl::Status AddTick(const timeline::TickEntry& tick, Sink sink);

  std::optional<v1::Session> session_;
  ResidencyMeter residency_;
  std::map<std::pair<uint32_t, uint32_t>, Epoch> epochs_;  // by (vm, epoch)
  GroupDeltas deltas_;
  uint64_t unusable_ticks_ = 0;
};

}  // namespace vcpulse::reading

#pragma once

// One vCPU between two of its samples, as every reader of ticks needs it.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "monitor/core/delta.h"
#include "monitor/core/event_slots.h"
#include "monitor/core/residency.h"
#include "monitor/core/sample.h"
#include "monitor/core/verdict.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::report {

// The deltas of one vCPU's groups, the main one first.
class GroupDeltas {
 public:
  // Both samples are of one epoch, and have this vCPU.
  GroupDeltas(const core::Sample& earlier, const core::Sample& later, size_t vcpu);

  std::span<const core::VcpuDelta> all() const { return std::span(deltas_).first(count_); }

 private:
  std::array<core::VcpuDelta, core::kMaxGroups> deltas_;
  size_t count_ = 1;
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

}  // namespace vcpulse::report

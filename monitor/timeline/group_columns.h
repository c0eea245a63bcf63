#pragma once

// The columns of a vCPU's further groups (GroupColumns in timeline.proto) from rows and back. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "monitor/core/sample.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::timeline {

// What coding a group's next row needs from those before it.
struct GroupState {
  core::GroupSample last;  // cumulative
  uint64_t not_running_ns = 0;
  uint64_t time_running_ns = 0;
  std::array<uint64_t, core::kMaxEvents> counts{};
};

// Numbers of events of a set's further groups, in order.
std::vector<size_t> FurtherEvents(const v1::VcpuSet& set);

// Fills out->further_groups. `further` are the groups of all rows, entry (t*vcpus+v)*G+g,
// `enabled_ns` the time enabled of the main group of each vCPU and row, entry t*vcpus+v.
void EncodeGroups(std::span<const core::GroupSample> further, std::span<const uint64_t> enabled_ns,
                  size_t vcpus, std::span<const size_t> events, v1::VmTicks* out);

// DataLoss where the columns do not fit `size` entries of groups with so many `events`.
absl::Status CheckGroups(const v1::VmTicks& columns, size_t size, std::span<const size_t> events);

// The group at entry `i`, whose vCPU's main group made `enabled_ns` of progress in this row;
// `first` is row 0.
core::GroupSample DecodeGroup(const v1::GroupColumns& columns, size_t events, size_t i, bool first,
                              uint64_t enabled_ns, GroupState& state);

}  // namespace vcpulse::timeline

#pragma once

// Which counter groups each vCPU of a VM gets. Pure.

#include <span>
#include <string>
#include <vector>

#include "kvm/events/event.h"
#include "kvm/events/pmu.h"

namespace vcpulse::kvm {

// One group: its events, the leader first.
struct GroupLayout {
  std::string pmu;  // on hybrid hosts the core PMU that it counts on; else empty
  std::vector<Event> events;

  bool operator==(const GroupLayout&) const = default;
};

// The groups that count `events` together. On a host with one core PMU: one group as given. On a
// hybrid host (`core_pmus` has two or more): a group per core PMU, since members of two PMUs cannot
// be in one group (perf_event_open: EINVAL), with generic and raw events bound to that PMU (its
// type goes into config bits 63:32 of PERF_TYPE_HARDWARE and PERF_TYPE_HW_CACHE:
// PERF_PMU_TYPE_SHIFT) and events of one PMU on that one alone, after the others, so that the slots
// of the others agree; host-side events then get a group of their own, for a group counts only
// while its PMU does.
std::vector<GroupLayout> LayoutOf(std::span<const Event> events, std::span<const Pmu> core_pmus);

}  // namespace vcpulse::kvm

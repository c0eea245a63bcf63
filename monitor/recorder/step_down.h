#pragma once

// When a VM's events step down the ladder, and to which rung. Pure.

#include <cstddef>
#include <vector>

#include "kvm/counters/group_layout.h"
#include "kvm/events/event.h"
#include "kvm/events/event_ladder.h"
#include "monitor/core/sample.h"

namespace vcpulse::recorder {

// So many samples in a row that AnyGroupNeverRan, and the groups will not run.
inline constexpr int kNeverRanSamples = 3;

// Whether a group of some vCPU was enabled for a while and was never on the PMU. Each
// `core_pmus` groups in a row count as one, each running on its own cores only. Groups that take
// turns are given a second for their first one.
bool AnyGroupNeverRan(const core::Sample& sample, size_t core_pmus, bool multiplexed);

// Events of the largest group.
size_t LargestGroup(const std::vector<kvm::GroupLayout>& layout);

// The next rung below `from` that would open something else than was opened: fewer events, or
// groups smaller than `largest_group`. ladder.size() where there is none.
size_t NextDifferentRung(const std::vector<kvm::Rung>& ladder, size_t from, size_t largest_group,
                         const std::vector<kvm::AbsentEvent>& absent);

}  // namespace vcpulse::recorder

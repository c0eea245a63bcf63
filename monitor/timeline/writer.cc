#include "monitor/timeline/writer.h"

#include <algorithm>

namespace vcpulse::timeline {

bool IsWritable(const v1::VcpuSet& set) {
  constexpr auto kMost = static_cast<int>(core::kMaxEvents);
  return set.events_size() <= kMost &&
         set.further_groups_size() < static_cast<int>(core::kMaxGroups) &&
         std::ranges::all_of(
             set.further_groups(),
             [](const v1::EventGroup& group) { return group.events_size() <= kMost; });
}

}  // namespace vcpulse::timeline

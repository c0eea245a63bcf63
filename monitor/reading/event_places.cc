#include "monitor/reading/event_places.h"

#include <algorithm>

#include "monitor/core/sample.h"

namespace vcpulse::reading {

std::vector<EventPlace> EventPlacesOf(const v1::VcpuSet& set) {
  std::vector<EventPlace> places;
  const auto add = [&places](const std::string& name, bool counted, size_t group, size_t slot) {
    if (std::ranges::find(places, name, &EventPlace::name) != places.end()) return;
    places.push_back({.name = name, .counted = counted, .group = group, .slot = slot});
  };
  const auto add_group = [&](const auto& events, size_t group) {
    const auto most = static_cast<int>(core::kMaxEvents);
    for (int i = 0; i < std::min(events.size(), most); ++i) {
      add(events[i], true, group, static_cast<size_t>(i));
    }
  };
  add_group(set.events(), 0);
  for (int g = 0; g < set.further_groups_size(); ++g) {
    if (static_cast<size_t>(g) + 1 >= core::kMaxGroups) break;
    add_group(set.further_groups(g).events(), static_cast<size_t>(g) + 1);
  }
  for (const v1::AbsentEvent& absent : set.absent_events()) add(absent.event(), false, 0, 0);
  return places;
}

}  // namespace vcpulse::reading

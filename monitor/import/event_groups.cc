#include "monitor/import/event_groups.h"

#include <algorithm>
#include <utility>

namespace vcpulse::importing {

EventGroups GroupEvents(const Table& table, const Layout& layout) {
  // Places in the layout by the number of their turn, in the order of their first events.
  std::vector<std::pair<uint32_t, std::vector<size_t>>> turns = {{0, {}}};
  for (size_t i = 0; i < layout.events.size(); ++i) {
    const uint32_t turn = table.turns[layout.events[i]];
    auto known = std::ranges::find(turns, turn, &decltype(turns)::value_type::first);
    if (known == turns.end()) known = turns.insert(turns.end(), {turn, {}});
    known->second.push_back(i);
  }
  EventGroups made;
  made.groups.emplace_back();
  made.places.resize(layout.events.size());
  size_t waiting = layout.events.size();  // places that are still to be given
  for (const auto& [turn, members] : turns) {
    const size_t room = (core::kMaxGroups - made.groups.size()) * core::kMaxEvents;
    // A group begun now leaves slots unused in the one before: what follows must fit all the same.
    bool begin = turn != 0 && room >= waiting;
    for (const size_t member : members) {
      if (begin || made.groups.back().events.size() == core::kMaxEvents) {
        made.groups.emplace_back();
        if (turn != 0) made.groups.back().timed_by = member;
        begin = false;
      }
      EventGroups::Group& group = made.groups.back();
      made.places[member] = {.group = made.groups.size() - 1, .slot = group.events.size()};
      group.events.push_back(layout.events[member]);
      --waiting;
    }
  }
  return made;
}

}  // namespace vcpulse::importing

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "monitor/import/table.h"

namespace vcpulse::importing {

// Where the counts of a row with one layout go in a sample.
struct EventGroups {
  struct Group {
    std::vector<uint32_t> events;  // in Table::events, by slot
    // Place in the layout of an event whose share of the time is that of the group; nothing where
    // its times are those of the row.
    std::optional<size_t> timed_by;
  };
  struct Place {
    size_t group = 0;
    size_t slot = 0;
  };
  std::vector<Group> groups;  // the main one first; one at least, perhaps without events
  std::vector<Place> places;  // of each event of the layout
};

// Events that are counted together fill groups of core::kMaxEvents: the first is the main one.
// Those that take turns get groups of their own behind them; where these would be more than
// core::kMaxGroups, the last ones share groups, and are timed as the first of them.
EventGroups GroupEvents(const Table& table, const Layout& layout);

}  // namespace vcpulse::importing

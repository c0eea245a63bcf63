#pragma once

// The records of an imported timeline that are no ticks.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "monitor/import/importer.h"
#include "monitor/import/table.h"
#include "vcpulse/v1/timeline.pb.h"

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

v1::Session MakeSession(const Table& table, const ImportOptions& options, int64_t interval_ns);

// The set of an epoch whose first rows are `first`, all of one VM and with the same cells, without
// the classifier.
v1::VcpuSet MakeVcpuSet(const Table& table, const EventGroups& groups,
                        std::span<const Row* const> first, bool max_hz_known);

}  // namespace vcpulse::importing

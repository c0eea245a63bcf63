#pragma once

// The records of an imported timeline that are no ticks.

#include <cstdint>
#include <span>
#include <string>

#include "monitor/import/event_groups.h"
#include "monitor/import/importer.h"
#include "monitor/import/table.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::importing {

v1::Session MakeSession(const Table& table, const ImportOptions& options, int64_t interval_ns);

// The set of an epoch whose first rows are `first`, all of one VM and with the same cells, without
// the classifier.
v1::VcpuSet MakeVcpuSet(const Table& table, const EventGroups& groups,
                        std::span<const Row* const> first, bool max_hz_known);

}  // namespace vcpulse::importing

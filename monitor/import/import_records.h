#pragma once

// The records of an imported timeline that are no ticks.

#include <cstdint>
#include <span>
#include <string>

#include "monitor/import/csv_import.h"
#include "monitor/import/csv_table.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::csv {

v1::Session MakeSession(const CsvTable& table, const ImportOptions& options, int64_t interval_ns);

// The fields that are counted in rows with these cells, in the order of the events.
std::vector<Field> CountedFields(const FieldSet& present);

// The set of an epoch of `vm`, without the classifier.
v1::VcpuSet MakeVcpuSet(const CsvTable& table, const std::string& vm, const FieldSet& present,
                        std::span<const uint32_t> vcpus, bool max_hz_known);

}  // namespace vcpulse::csv

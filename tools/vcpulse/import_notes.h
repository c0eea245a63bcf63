#pragma once

#include <string>
#include <vector>

#include "monitor/import/importer.h"
#include "monitor/import/table.h"

namespace vcpulse::tools {

// What a person is told after an import: what stands for what, what was left out and why, and last
// how much came in. A line each, safe for a terminal.
std::vector<std::string> ImportNotes(const importing::Table& table,
                                     const importing::ImportOptions& options,
                                     const importing::ImportReport& report);

}  // namespace vcpulse::tools

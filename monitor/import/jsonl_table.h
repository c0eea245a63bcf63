#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "monitor/import/table.h"

namespace vcpulse::importing {

// A table of JSON lines as `vcpulse export --format jsonl` writes them, one object per vCPU and
// interval. A missing key or null is an absent value; keys with an event's name (IsEventName) are
// counts. A last line that was cut off is passed over (Table::skipped). Errors: InvalidArgument in
// one line with line and key ("FILE: line 7, key cycles: no whole number"); ResourceExhausted
// beyond the limits of a table.
absl::StatusOr<Table> ParseJsonl(std::string_view text, const std::string& name);

}  // namespace vcpulse::importing

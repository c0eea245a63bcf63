#pragma once

// What the columns of CSV and the keys of JSON lines are called.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "monitor/import/table.h"

namespace vcpulse::importing {

std::string_view ColumnName(Field field);  // of CSV: "t_ns", ...

// The field of a column of CSV, or of a key of JSON lines, as `vcpulse export` writes them.
std::optional<Field> FieldOfColumn(std::string_view column);
std::optional<Field> FieldOfKey(std::string_view key);

// As names of columns are compared: perf's hyphens may be underscores.
std::string AsCompared(std::string name);

// The columns of CSV whose names are not perf's, and the events that they count, in the order in
// which they come first in any table.
struct EventColumn {
  std::string_view column;
  std::string_view event;
};
inline constexpr std::array<EventColumn, 8> kEventColumns = {
    {{"cycles", "cycles"},
     {"instructions", "instructions"},
     {"branches", "branches"},
     {"branch_misses", "branch-misses"},
     {"cache_misses", "cache-misses"},
     {"ref_cycles", "ref-cycles"},
     // A count of PAUSE instructions from elsewhere, as core::FindSlots knows it.
     {"pause", "pause"},
     {"pause_cycles", "cpu_clk_unhalted.pause"}}};

// The place there of the column that an event has; nothing where it has none of them.
std::optional<size_t> EventColumnOf(std::string_view event);

// Behind the name of an event's column: in which share of the time it was counted.
inline constexpr std::string_view kShareSuffix = "_counted_share";

// `name` without the "event:" that `vcpulse export` writes in front of an event's name where that
// is another column's.
std::string_view WithoutEventPrefix(std::string_view name);

// perf's name for what a column of CSV counts where that is spelt otherwise: "branch_misses" is
// "branch-misses", "pause_cycles" cpu_clk_unhalted.pause. Nothing for any other name.
std::optional<std::string_view> EventOfColumn(std::string_view column);

// What `vcpulse export` computes from the rest, and an import makes anew: passed over in silence.
bool IsDerived(std::string_view name);

// Whether a name that is none of the above is that of an event. Generic names of perf, `rHEX` with
// a digit in it, `pmu/.../`, `system:event` and names with a dot (those of a CPU's own list) are;
// in a file that `vcpulse export` wrote, so is any one word that perf's syntax takes, since events
// may have been given names of their own.
bool IsEventName(std::string_view name, bool of_an_export);

// A state as /proc or vcpulse spells it; nothing for anything else.
std::optional<core::ThreadState> ParseState(std::string_view text);

}  // namespace vcpulse::importing

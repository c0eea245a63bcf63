#pragma once

// What the columns of CSV and the keys of JSON lines are called.

#include <optional>
#include <string>
#include <string_view>

#include "monitor/import/table.h"

namespace vcpulse::importing {

std::string_view ColumnName(Field field);  // of CSV: "t_ns", ...

// The field of a column of CSV, or of a key of JSON lines, as `vcpulse export` writes them.
std::optional<Field> FieldOfColumn(std::string_view column);
std::optional<Field> FieldOfKey(std::string_view key);

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

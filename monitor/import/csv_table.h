#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "monitor/import/table.h"
#include "monitor/import/text_source.h"

namespace vcpulse::importing {

// A table of CSV `text`: made by hand, or by `vcpulse export --format csv`. A missing column or an
// empty cell is an absent value; a missing `vm` is the VM "csv", a missing `vcpu` is 0. Columns
// with an event's name (IsEventName) are counts. `keep` names further columns whose cells are kept
// as they are; where one is missing its cells are empty. Errors: InvalidArgument in one line with
// row and column ("FILE: row 7, column cycles: '12x' is no whole number"); ResourceExhausted beyond
// the limits of a table.
absl::StatusOr<Table> ParseCsv(std::string_view text, const std::string& name,
                               std::span<const std::string_view> keep = {});

// The same row by row, of text of any length. `source` must outlive it.
std::unique_ptr<RowReader> CsvRows(TextSource& source, const std::string& name);

// A table of JSON lines as `vcpulse export --format jsonl` writes them, one object per vCPU and
// interval. A missing key or null is an absent value; keys with an event's name (IsEventName) are
// counts. A last line that was cut off is skipped (Table::skipped). Errors: InvalidArgument in
// one line with line and key ("FILE: line 7, key cycles: no whole number"); ResourceExhausted
// beyond the limits of a table.
absl::StatusOr<Table> ParseJsonl(std::string_view text, const std::string& name);

std::unique_ptr<RowReader> JsonlRows(TextSource& source, const std::string& name);

}  // namespace vcpulse::importing

#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/core/sample.h"

namespace vcpulse::csv {

// The columns that hold whole numbers.
enum class Field : uint8_t {
  kT,
  kDt,
  kVcpu,
  // What was counted, in the order of the events of a timeline.
  kCycles,
  kInstructions,
  kBranches,
  kBranchMisses,
  kCacheMisses,
  kRefCycles,
  kPause,        // PAUSE instructions
  kPauseCycles,  // cycles in PAUSE, as later CPUs count it
  kTimeEnabled,
  kTimeRunning,
  kRun,
  kRunDelay,
};
inline constexpr size_t kFields = 15;
inline constexpr size_t kFirstCount = static_cast<size_t>(Field::kCycles);
inline constexpr size_t kCounts = 8;
static_assert(kCounts <= core::kMaxEvents);

using FieldSet = std::bitset<kFields>;

std::string_view ColumnName(Field field);  // "t_ns", ...
std::string_view EventName(Field field);   // perf's name; only of what is counted

// More rows than this are refused: they are held in memory, about 300 bytes each beside the text.
inline constexpr size_t kMaxRows = 4'000'000;

struct CsvRow {
  uint64_t number = 0;  // of the row in the text; the header's is 1
  uint32_t vm = 0;      // in CsvTable::texts
  core::ThreadState state = core::ThreadState::kNotRead;
  FieldSet present;
  std::array<uint64_t, kFields> values{};

  std::optional<uint64_t> Value(Field field) const {
    const auto i = static_cast<size_t>(field);
    if (!present[i]) return std::nullopt;
    return values[i];
  }
};

struct CsvTable {
  std::string name;  // of the file, begins every error message
  FieldSet columns;  // that the header names
  std::vector<CsvRow> rows;
  std::vector<std::string> texts;    // each once: names of VMs, and what was kept
  std::vector<std::string> ignored;  // columns of other names
  // Of the columns asked for in `keep`, row by row: places in texts.
  std::vector<uint32_t> kept;
  size_t kept_columns = 0;

  const std::string& Kept(size_t row, size_t column) const {
    return texts[kept[row * kept_columns + column]];
  }
};

// A table of `text`. A missing column or an empty cell is an absent value; a missing `vm` is the VM
// "csv", a missing `vcpu` is 0. `keep` names further columns whose cells are kept as they are;
// where one is missing its cells are empty. Errors: InvalidArgument in one line with row and column
// ("FILE: row 7, column cycles: '12x' is no whole number"); ResourceExhausted beyond kMaxRows.
absl::StatusOr<CsvTable> ParseCsv(std::string_view text, const std::string& name,
                                  std::span<const std::string_view> keep = {});

}  // namespace vcpulse::csv

#pragma once

// Rows of a timeline as values that tests can add up.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "monitor/rollup/row.h"
#include "monitor/rollup/windows.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::rollup {

inline constexpr int64_t kSecond_ns = 1'000'000'000;

// The cells of a row by the names of their columns.
using Cells = std::map<std::string, Value, std::less<>>;

inline Cells CellsOf(const Row& row) {
  Cells cells;
  for (const Column& column : Columns()) cells[std::string(column.name)] = column.of(row);
  return cells;
}

inline int64_t Number(const Cells& cells, std::string_view column) {
  const auto found = cells.find(column);
  const auto* number = found == cells.end() ? nullptr : std::get_if<int64_t>(&found->second);
  EXPECT_NE(number, nullptr) << column;
  return number == nullptr ? -1 : *number;
}

inline bool IsNull(const Cells& cells, std::string_view column) {
  return std::holds_alternative<std::monostate>(cells.find(column)->second);
}

inline std::string Text(const Cells& cells, std::string_view column) {
  const auto* text = std::get_if<std::string>(&cells.find(column)->second);
  return text == nullptr ? "(none)" : *text;
}

// Takes `more` into `sum`: null and a number is that number.
inline void AddCells(const Cells& more, Cells& sum) {
  for (const Column& column : Columns()) {
    const auto* number = std::get_if<int64_t>(&more.find(column.name)->second);
    if (number == nullptr || (!column.adds_up && !column.is_maximum)) continue;
    Value& value = sum[std::string(column.name)];
    const auto* before = std::get_if<int64_t>(&value);
    if (before == nullptr) {
      value = *number;
    } else {
      value = column.adds_up ? *before + *number : std::max(*before, *number);
    }
  }
}

struct RolledUp {
  std::vector<std::vector<Cells>> rows;  // by level
  uint64_t undated_intervals = 0;
};

// `edit` may change each entry before it is taken.
template <typename Read>
RolledUp RollUp(const std::vector<int64_t>& lengths_ns, const Read& read) {
  RolledUp rolled;
  rolled.rows.resize(lengths_ns.size());
  Windows windows(lengths_ns, [&rolled](size_t level, const Row& row) {
    rolled.rows[level].push_back(CellsOf(row));
    return absl::OkStatus();
  });
  read([&windows](const timeline::Entry& entry) { return windows.Add(entry); });
  EXPECT_TRUE(windows.Finish().ok());
  rolled.undated_intervals = windows.undated_intervals();
  return rolled;
}

inline RolledUp RollUpFile(const std::string& path, const std::vector<int64_t>& lengths_ns) {
  return RollUp(lengths_ns, [&path](const timeline::EntrySink& sink) {
    const auto read = timeline::ReadTimeline(path, sink);
    EXPECT_TRUE(read.ok()) << read.status();
  });
}

inline RolledUp RollUpBytes(std::span<const uint8_t> bytes,
                            const std::vector<int64_t>& lengths_ns) {
  return RollUp(lengths_ns, [bytes](const timeline::EntrySink& sink) {
    const auto read = timeline::ReadTimelineBytes(bytes, sink);
    EXPECT_TRUE(read.ok()) << read.status();
  });
}

}  // namespace vcpulse::rollup

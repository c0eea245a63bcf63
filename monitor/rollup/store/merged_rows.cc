#include "monitor/rollup/store/merged_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace vcpulse::rollup {
namespace {

using Key = std::array<int64_t, 4>;  // window_start_ns, vm, vcpu, epoch
using Cells = std::vector<std::string_view>;

constexpr std::array<std::string_view, 4> kKeyColumns = {"window_start_ns", "vm", "vcpu", "epoch"};

// The rows of one key in one reading.
struct Rows {
  int64_t ticks = 0;
  int64_t gap_ns = 0;
  std::string text;
};

// Cells as they are written, quotes and all, of the row that `text` begins with; takes the row off.
// importing::CsvReader would take the quotes off, and refuse long cells. A row without its line end
// has no cells.
Cells TakeRow(std::string_view& text) {
  Cells cells;
  bool is_quoted = false;
  size_t begin = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted || (c != ',' && c != '\n')) continue;
    cells.push_back(text.substr(begin, at - begin));
    begin = at + 1;
    if (c == ',') continue;
    text.remove_prefix(begin);
    return cells;
  }
  text = {};
  return {};
}

std::optional<size_t> PlaceOf(std::string_view name, const Cells& header) {
  const auto found = std::ranges::find(header, name);
  if (found == header.end()) return std::nullopt;
  return static_cast<size_t>(found - header.begin());
}

std::optional<int64_t> NumberIn(const Cells& cells, std::optional<size_t> place) {
  if (!place) return std::nullopt;
  const std::string_view cell = cells[*place];
  int64_t number = 0;
  const auto read = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (read.ec != std::errc() || read.ptr != cell.data() + cell.size()) return std::nullopt;
  return number;
}

// A row without a key is left out.
std::map<Key, Rows> RowsByKey(std::string_view text, const Cells& columns) {
  std::map<Key, Rows> all;
  const Cells header = TakeRow(text);
  std::vector<std::optional<size_t>> places;
  places.reserve(columns.size());
  for (const std::string_view column : columns) places.push_back(PlaceOf(column, header));
  while (!text.empty()) {
    const Cells cells = TakeRow(text);
    if (cells.size() != header.size()) continue;
    Key key{};
    bool has_key = true;
    for (size_t i = 0; i < key.size(); ++i) {
      const auto number = NumberIn(cells, PlaceOf(kKeyColumns[i], header));
      has_key = has_key && number.has_value();
      key[i] = number.value_or(0);
    }
    if (!has_key) continue;
    Rows& rows = all[key];
    rows.ticks += NumberIn(cells, PlaceOf("ticks", header)).value_or(0);
    rows.gap_ns += NumberIn(cells, PlaceOf("gap_ns", header)).value_or(0);
    for (size_t i = 0; i < places.size(); ++i) {
      if (i > 0) rows.text += ',';
      if (places[i]) rows.text += cells[*places[i]];
    }
    rows.text += '\n';
  }
  return all;
}

bool IsBetter(const Rows& newer, const Rows& older) {
  if (newer.ticks != older.ticks) return newer.ticks > older.ticks;
  return newer.gap_ns < older.gap_ns;
}

}  // namespace

std::string MergeRows(std::string_view older, std::string_view newer) {
  std::string_view rest = newer;
  const Cells columns = TakeRow(rest);
  std::string merged(newer.substr(0, newer.size() - rest.size()));
  std::map<Key, Rows> rows = RowsByKey(older, columns);
  for (auto& [key, found] : RowsByKey(newer, columns)) {
    const auto known = rows.find(key);
    if (known == rows.end() || IsBetter(found, known->second)) rows[key] = std::move(found);
  }
  for (const auto& [key, each] : rows) merged += each.text;
  return merged;
}

}  // namespace vcpulse::rollup

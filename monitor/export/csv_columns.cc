#include "monitor/export/csv_columns.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "monitor/core/event_slots.h"
#include "monitor/export/csv.h"
#include "monitor/import/csv_table.h"
#include "monitor/reading/event_places.h"

namespace vcpulse::exporting {
namespace {

bool TakesTurns(const v1::VcpuSet& set, const reading::EventPlace& place) {
  return place.counted && place.group >= std::max<size_t>(1, set.core_pmus());
}

// What `import csv` calls it, in the order of its fields.
std::optional<csv::Field> KnownField(const std::string& event) {
  const core::EventSlots slots = core::FindSlots(std::array<std::string_view, 1>{event});
  if (slots.cycles) return csv::Field::kCycles;
  if (slots.instructions) return csv::Field::kInstructions;
  if (slots.branches) return csv::Field::kBranches;
  if (slots.branch_misses) return csv::Field::kBranchMisses;
  if (slots.cache_misses) return csv::Field::kCacheMisses;
  if (slots.ref_cycles) return csv::Field::kRefCycles;
  if (slots.pause) return slots.pause_in_cycles ? csv::Field::kPauseCycles : csv::Field::kPause;
  return std::nullopt;
}

// As `import csv` compares the names of columns.
std::string AsCompared(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace

void CsvColumns::Add(const v1::VcpuSet& set) {
  for (const reading::EventPlace& place : reading::EventPlacesOf(set)) {
    const auto [known, is_new] = in_turns_.try_emplace(place.name, false);
    if (is_new) events_.push_back(place.name);
    if (TakesTurns(set, place)) known->second = true;
  }
}

bool CsvColumns::Covers(const v1::VcpuSet& set) const {
  return std::ranges::all_of(reading::EventPlacesOf(set), [&](const reading::EventPlace& place) {
    const auto known = in_turns_.find(place.name);
    return known != in_turns_.end() && (known->second || !TakesTurns(set, place));
  });
}

std::vector<CsvColumns::Column> CsvColumns::Columns() const {
  std::set<std::string> taken;
  for (const std::string_view name : kCsvColumnsBefore) taken.emplace(name);
  for (const std::string_view name : kCsvColumnsAfter) taken.emplace(name);
  for (size_t i = 0; i < csv::kCounts; ++i) {
    taken.emplace(csv::ColumnName(static_cast<csv::Field>(csv::kFirstCount + i)));
  }
  const auto own_name = [&taken](std::string name) {
    while (!taken.insert(AsCompared(name)).second) name.insert(0, "event:");
    return name;
  };
  std::array<const std::string*, csv::kCounts> known{};  // by field: the first event that is it
  std::vector<const std::string*> others;
  for (const std::string& event : events_) {
    const std::optional<csv::Field> field = KnownField(event);
    const std::string** const place =
        field ? &known[static_cast<size_t>(*field) - csv::kFirstCount] : nullptr;
    if (place != nullptr && *place == nullptr) {
      *place = &event;
    } else {
      others.push_back(&event);
    }
  }
  std::vector<Column> columns;
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i] == nullptr) continue;
    const auto field = static_cast<csv::Field>(csv::kFirstCount + i);
    columns.push_back({.event = *known[i], .header = std::string(csv::ColumnName(field))});
  }
  for (const std::string* event : others) {
    columns.push_back({.event = *event, .header = own_name(*event)});
  }
  const size_t counts = columns.size();
  for (size_t i = 0; i < counts; ++i) {
    if (!in_turns_.at(columns[i].event)) continue;
    columns.push_back({.event = columns[i].event,
                       .header = own_name(columns[i].header + "_counted_share"),
                       .is_share = true});
  }
  return columns;
}

std::string CsvCell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace vcpulse::exporting

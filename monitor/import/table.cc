#include "monitor/import/table.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/import/csv_reader.h"

namespace vcpulse::importing {
namespace {

constexpr size_t kMaxNeighbours = 1'000'000;

// The events that a row with the main group off the PMU would have counted, as those of `known`;
// whether it fits: what the row counted is in it, and all else belongs to the main group.
bool FillWithZeros(const Layout& known, Row& row, Table& table) {
  const Layout& own = table.LayoutOf(row);
  const bool fits =
      std::ranges::includes(known.events, own.events) &&
      std::ranges::all_of(known.events, [&](uint32_t event) {
        return table.turns[event] == 0 || std::ranges::binary_search(own.events, event);
      });
  if (!fits || known.events.empty()) return false;
  const size_t first = table.counts.size();
  for (const uint32_t event : known.events) {
    const auto place = std::ranges::lower_bound(own.events, event) - own.events.begin();
    const bool has = std::ranges::binary_search(own.events, event);
    const size_t from = row.first_count + static_cast<size_t>(place);
    table.counts.push_back(has ? table.counts[from] : 0);
    if (!table.shares.empty()) table.shares.push_back(has ? table.shares[from] : 0);
  }
  row.first_count = first;
  return true;
}

bool MainGroupNeverRan(const Table& table, const Row& row) {
  if (row.Value(Field::kTimeRunning) != 0u || row.Value(Field::kTimeEnabled).value_or(0) == 0) {
    return false;
  }
  return std::ranges::none_of(table.LayoutOf(row).events,
                              [&](uint32_t event) { return table.turns[event] == 0; });
}

}  // namespace

void Table::KeepRows(std::span<const size_t> places) {
  std::vector<Row> kept_rows;
  std::vector<uint64_t> kept_counts;
  std::vector<double> kept_shares;
  kept_rows.reserve(places.size());
  for (const size_t place : places) {
    Row row = rows[place];
    const auto begin = static_cast<std::ptrdiff_t>(row.first_count);
    const auto end = begin + static_cast<std::ptrdiff_t>(LayoutOf(row).events.size());
    row.first_count = kept_counts.size();
    kept_counts.insert(kept_counts.end(), counts.begin() + begin, counts.begin() + end);
    if (!shares.empty()) {
      kept_shares.insert(kept_shares.end(), shares.begin() + begin, shares.begin() + end);
    }
    kept_rows.push_back(row);
  }
  rows = std::move(kept_rows);
  counts = std::move(kept_counts);
  shares = std::move(kept_shares);
}

void Table::Skip(std::string_view what, uint64_t line) {
  const auto known = std::ranges::find(skipped, what, &Skipped::what);
  if (known == skipped.end()) {
    skipped.push_back({.what = std::string(what), .lines = 1, .first = line});
  } else {
    ++known->lines;
  }
}

bool Table::IsCounted(std::string_view event) const {
  const std::optional<uint32_t> place = FindEvent(event);
  return place && std::ranges::any_of(layouts, [&](const Layout& layout) {
           return std::ranges::binary_search(layout.events, *place);
         });
}

std::optional<uint32_t> Table::FindEvent(std::string_view event) const {
  const auto found = std::ranges::find(events, event);
  if (found == events.end()) return std::nullopt;
  return static_cast<uint32_t>(found - events.begin());
}

std::optional<uint64_t> Table::CountOf(const Row& row, std::optional<uint32_t> event) const {
  if (!event) return std::nullopt;
  const Layout& layout = LayoutOf(row);
  const auto found = std::ranges::find(layout.events, *event);
  if (found == layout.events.end()) return std::nullopt;
  return counts[row.first_count + static_cast<size_t>(found - layout.events.begin())];
}

absl::StatusOr<uint32_t> TableBuilder::Event(std::string_view name) {
  if (const auto known = table_.FindEvent(name)) return *known;
  if (table_.events.size() == kMaxTableEvents) {
    return absl::ResourceExhaustedError(
        absl::StrCat(table_.name, ": more than ", kMaxTableEvents, " different events"));
  }
  table_.events.emplace_back(name);
  table_.turns.push_back(0);
  return static_cast<uint32_t>(table_.events.size() - 1);
}

uint32_t TableBuilder::Vm(const VmIdentity& vm) {
  const auto [found, is_new] = vms_.try_emplace(vm, static_cast<uint32_t>(table_.vms.size()));
  if (is_new) table_.vms.push_back(vm);
  return found->second;
}

absl::Status TableBuilder::Error(const Row& row, std::string_view what) const {
  return absl::ResourceExhaustedError(
      absl::StrCat(table_.name, ": ", table_.unit, " ", row.number, ": ", ToAbsl(what)));
}

absl::StatusOr<uint32_t> TableBuilder::Intern(const Row& row, const Layout& layout) {
  if (!table_.rows.empty() && table_.LayoutOf(table_.rows.back()) == layout) {
    return table_.rows.back().layout;
  }
  const auto known = layouts_.find(layout);
  if (known != layouts_.end()) return known->second;
  if (table_.layouts.size() == kMaxLayouts) {
    return Error(row, absl::StrCat("the events that are counted change too often: more than ",
                                   kMaxLayouts, " different lists of them; split the file"));
  }
  const auto number = static_cast<uint32_t>(table_.layouts.size());
  table_.layouts.push_back(layout);
  layouts_.emplace(layout, number);
  return number;
}

absl::Status TableBuilder::Add(Row row, const Layout& layout, std::span<const uint64_t> counts,
                               std::span<const double> shares) {
  if (table_.rows.size() == kMaxRows) {
    return absl::ResourceExhaustedError(
        absl::StrCat(table_.name, ": more than ", kMaxRows, " rows: split it"));
  }
  if (table_.counts.size() + counts.size() > kMaxCounts) {
    return Error(row, absl::StrCat("more than ", kMaxCounts, " counts: split the file"));
  }
  if (layout.events.size() > kMaxRowEvents) {
    return Error(row, absl::StrCat(layout.events.size(), " events: at most ", kMaxRowEvents,
                                   " fit into a timeline"));
  }
  const absl::StatusOr<uint32_t> number = Intern(row, layout);
  if (!number.ok()) return number.status();
  row.layout = *number;
  row.first_count = table_.counts.size();
  table_.counts.insert(table_.counts.end(), counts.begin(), counts.end());
  if (!shares.empty() || !table_.shares.empty()) {
    table_.shares.resize(row.first_count, 1);
    table_.shares.insert(table_.shares.end(), shares.begin(), shares.end());
    table_.shares.resize(table_.counts.size(), 1);
  }
  table_.rows.push_back(row);
  return absl::OkStatus();
}

TableBuilder::EpochKey TableBuilder::KeyOf(const Row& row) {
  const uint64_t epoch = row.Value(Field::kEpoch).value_or(0);
  return {row.vm, epoch > 0 ? 0 : row.Value(Field::kVcpu).value_or(0), epoch};
}

void TableBuilder::Fill(size_t first) {
  const auto rows = std::span(table_.rows).subspan(first);
  const auto fill = [this](Row& row, uint32_t layout) {
    if (!FillWithZeros(table_.layouts[layout], row, table_)) return false;
    row.layout = layout;
    return true;
  };
  std::vector<Row*> open;
  for (Row& row : rows) {
    const bool never_ran = MainGroupNeverRan(table_, row);
    const auto found = neighbours_.find(KeyOf(row));
    // An epoch in each row is refused later; it must not fill the memory before.
    if (found == neighbours_.end() && neighbours_.size() >= kMaxNeighbours) continue;
    Neighbours& near = found == neighbours_.end() ? neighbours_[KeyOf(row)] : found->second;
    if (!near.last) near.last = row.layout;
    if (never_ran && !fill(row, *near.last)) {
      open.push_back(&row);
      continue;
    }
    near.last = row.layout;
    if (!near.first) near.first = row.layout;
    near.any = true;
  }
  if (open.empty()) return;
  // Backwards: from the row after, which may be in a later batch.
  std::map<EpochKey, uint32_t> after;
  for (const Row* row : open) {
    const Neighbours& near = neighbours_.at(KeyOf(*row));
    if (!near.any && near.first) after.try_emplace(KeyOf(*row), *near.first);
  }
  auto next_open = open.rbegin();
  for (Row& row : std::views::reverse(rows)) {
    const bool is_open = next_open != open.rend() && *next_open == &row;
    if (is_open) ++next_open;
    const auto known = after.find(KeyOf(row));
    if (is_open && (known == after.end() || !fill(row, known->second))) continue;
    after.insert_or_assign(KeyOf(row), row.layout);
  }
}

void TableBuilder::Rewind() {
  table_.KeepRows({});
  table_.skipped.clear();
  for (auto& [key, near] : neighbours_) {
    near.last.reset();
    near.any = false;
  }
}

Table TableBuilder::Finish() {
  Fill(0);
  return std::move(table_);
}

absl::StatusOr<bool> RowReader::Read(size_t rows) {
  const size_t first = builder_.table().rows.size();
  for (size_t i = 0; i < rows; ++i) {
    absl::StatusOr<bool> more = ReadRow();
    if (!more.ok()) return more;
    if (!*more) {
      builder_.Fill(first);
      return false;
    }
  }
  builder_.Fill(first);
  return true;
}

void RowReader::Rewind() {
  turns_.Number(builder_.table().turns);
  builder_.Rewind();
  RewindText();
}

absl::StatusOr<Table> RowReader::ReadWhole() {
  while (true) {
    absl::StatusOr<bool> more = ReadRow();
    if (!more.ok()) return more.status();
    if (!*more) break;
  }
  turns_.Number(builder_.table().turns);
  return builder_.Finish();
}

void Turns::Add(std::span<const std::pair<uint32_t, double>> shares) {
  std::optional<uint32_t> before;
  double share_before = 0;
  for (const auto& [event, share] : shares) {
    Turn& turn = events_.try_emplace(event, Turn{.before = before, .alone = !before}).first->second;
    if (turn.before != before || share != share_before) turn.alone = true;
    before = event;
    share_before = share;
  }
}

void Turns::Number(std::vector<uint32_t>& turns) const {
  uint32_t number = 0;
  for (const auto& [event, turn] : events_) {
    const bool joins = !turn.alone && turn.before && *turn.before < event;
    turns[event] = joins ? turns[*turn.before] : ++number;
  }
}

std::string WhyNoValue(Field field, uint64_t value) {
  const std::string quoted = Quoted(std::to_string(value));
  const bool is_time = field == Field::kT || field == Field::kDt || field == Field::kWall;
  if (is_time && value >= kMaxTime_ns) return absl::StrCat(quoted, " is beyond 2^62 ns");
  if (field == Field::kDt && value == 0) return "an interval must be longer than 0";
  if (field == Field::kVcpu && value > kMaxVcpu) {
    return absl::StrCat(quoted, " is beyond ", kMaxVcpu);
  }
  const bool is_number = field == Field::kEpoch || field == Field::kTid || field == Field::kKvmId;
  if (is_number && value > std::numeric_limits<uint32_t>::max()) {
    return absl::StrCat(quoted, " is beyond 2^32");
  }
  return "";
}

std::optional<double> ParseShare(std::string_view text) {
  double share = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, share);
  if (read.ec != std::errc() || read.ptr != end || !(share >= 0 && share <= 1)) {
    return std::nullopt;
  }
  return share;
}

}  // namespace vcpulse::importing

#include "monitor/import/csv_table.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/import/column_names.h"
#include "monitor/import/csv_reader.h"
#include "monitor/import/table.h"

namespace vcpulse::importing {
namespace {

// "298626903.0", as a dataframe writes a whole number of a column with empty cells, without ".0".
std::string_view WithoutZeros(std::string_view cell) {
  const size_t point = cell.find('.');
  if (point == 0 || point == std::string_view::npos || point + 1 == cell.size()) return cell;
  const bool zeros = cell.find_first_not_of('0', point + 1) == std::string_view::npos;
  return zeros ? cell.substr(0, point) : cell;
}

constexpr std::string_view kNoCsvVm = "csv";

// As it is compared: perf writes "branch-misses", some tools a blank behind each comma.
std::string Trimmed(std::string_view written) {
  const size_t first = written.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(written.substr(first, written.find_last_not_of(" \t") - first + 1));
}

// What a column is for.
struct Column {
  enum class Kind {
    kIgnored,
    kField,
    kEvent,
    kState,
    kVmName,
    kVmUuid,
    kVmNumber,
    kVmPid,
    kVmStart,
    kKept,
    kShare  // of an event
  };
  Kind kind = Kind::kIgnored;
  size_t number = 0;  // of the field, the event or the one that is kept
  std::string name;   // for messages
};

// Reads one table.
class CsvParser : public RowReader {
 public:
  CsvParser(TextSource& source, const std::string& name, std::span<const std::string_view> keep)
      : RowReader(name), reader_(source), keep_(keep) {
    builder_.table().kept_columns = keep.size();
  }

 protected:
  absl::StatusOr<bool> ReadRow() override;
  void RewindText() override {
    reader_.Rewind();
    header_taken_ = false;
    any_row_ = false;
  }

 private:
  absl::Status Named(const absl::Status& status) const {
    if (!absl::IsInvalidArgument(status)) return status;  // of the source, which names the file
    return absl::InvalidArgumentError(absl::StrCat(name(), ": ", status.message()));
  }
  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(name(), ": ", ToAbsl(what)));
  }
  absl::Status RowError(const Column& column, std::string_view what) const {
    return Error(absl::StrCat("row ", reader_.row(), ", column ", column.name, ": ", ToAbsl(what)));
  }
  const std::string& name() const { return builder_.table().name; }

  uint32_t Keep(std::string_view text) {
    std::vector<std::string>& texts = builder_.table().texts;
    const auto [found, is_new] =
        kept_.try_emplace(std::string(text), static_cast<uint32_t>(texts.size()));
    if (is_new) texts.emplace_back(text);
    return found->second;
  }

  absl::Status TakeHeader();
  // What the column of this name is for; its event gets a number.
  absl::StatusOr<Column> ColumnOf(const std::string& name);
  absl::Status TakeRow();
  // Columns with the share of another one's event.
  void FindShares();
  // What the VM is called, without what export put behind a name that came twice.
  void CleanVmName();
  absl::Status AddRow(const Row& row);
  // Why a cell is not what its column holds; empty where it is.
  std::string TakeCell(const Column& column, const std::string& cell, Row& row);

  CsvReader reader_;
  std::span<const std::string_view> keep_;
  bool header_taken_ = false;  // in this reading
  bool any_row_ = false;
  std::vector<std::string> cells_;
  std::vector<Column> columns_;
  std::unordered_map<std::string, uint32_t> kept_;
  std::set<uint32_t> counted_;  // events that have a column
  bool of_an_export_ = false;
  // Of the row that is being read.
  VmIdentity vm_;
  std::vector<std::pair<uint32_t, uint64_t>> counts_;
  std::vector<std::pair<uint32_t, double>> shares_;
  std::vector<std::string_view> kept_cells_;
  // Of the row before.
  VmIdentity last_vm_;
  uint32_t last_vm_number_ = 0;
};

absl::StatusOr<bool> CsvParser::ReadRow() {
  absl::StatusOr<bool> row = reader_.Next(cells_);
  if (!row.ok()) return Named(row.status());
  if (!header_taken_) {
    if (!*row) return Error("empty: a header with the names of its columns is needed");
    header_taken_ = true;
    // In a later reading it is known.
    if (columns_.empty()) {
      if (absl::Status status = TakeHeader(); !status.ok()) return status;
    }
    row = reader_.Next(cells_);
    if (!row.ok()) return Named(row.status());
  }
  if (!*row) {
    if (any_row_) return false;
    return Error("holds no row but the header");
  }
  if (absl::Status status = TakeRow(); !status.ok()) return status;
  any_row_ = true;
  return true;
}

absl::StatusOr<Column> CsvParser::ColumnOf(const std::string& name) {
  using Kind = Column::Kind;
  const std::string compared = AsCompared(name);
  Column column{.name = name};
  constexpr std::array<std::pair<std::string_view, Kind>, 6> kOthers = {
      {{"state", Kind::kState},
       {"vm", Kind::kVmName},
       {"vm_uuid", Kind::kVmUuid},
       {"vm_number", Kind::kVmNumber},
       {"vm_pid", Kind::kVmPid},
       {"vm_start_time", Kind::kVmStart}}};
  const std::string plain(of_an_export_ ? WithoutEventPrefix(name) : name);
  std::optional<std::string> event;
  if (const auto known = EventOfColumn(compared)) event = *known;
  if (const auto* other =
          std::ranges::find(kOthers, compared, &decltype(kOthers)::value_type::first);
      other != kOthers.end()) {
    column.kind = other->second;
  } else if (const auto field = FieldOfColumn(compared)) {
    column.kind = Kind::kField;
    column.number = static_cast<size_t>(*field);
    builder_.table().columns.set(column.number);
  } else if (const auto kept = std::ranges::find(keep_, compared); kept != keep_.end()) {
    column.kind = Kind::kKept;
    column.number = static_cast<size_t>(kept - keep_.begin());
  } else if (of_an_export_ && name.ends_with(kShareSuffix)) {
    column.kind = Kind::kShare;  // of which event, FindShares knows
  } else if (event || (!IsDerived(name) && IsEventName(plain, of_an_export_))) {
    column.kind = Kind::kEvent;
    const absl::StatusOr<uint32_t> number = builder_.Event(event.value_or(plain));
    if (!number.ok()) return number.status();
    column.number = *number;
    if (!counted_.insert(*number).second) {
      return Error(absl::StrCat("row ", reader_.row(), ": two columns count ",
                                builder_.table().events[*number]));
    }
  } else if (!IsDerived(name)) {
    builder_.table().ignored.push_back(name);
  }
  return column;
}

absl::Status CsvParser::TakeHeader() {
  std::vector<std::string> compared;
  for (std::string& cell : cells_) {
    cell = Trimmed(cell);
    compared.push_back(AsCompared(cell));
    if (std::find(compared.begin(), compared.end() - 1, compared.back()) != compared.end() - 1) {
      return Error(absl::StrCat("row ", reader_.row(), ": two columns are named ", Quoted(cell)));
    }
  }
  const auto has = [&](std::string_view name) {
    return std::ranges::find(compared, name) != compared.end();
  };
  of_an_export_ = has("vm_number") && has("raw_band");
  builder_.table().has_verdicts = of_an_export_;
  // The events that every timeline may have come first, whatever the order of the columns.
  for (const std::string_view first : {"cycles", "instructions", "branches", "branch_misses",
                                       "cache_misses", "ref_cycles", "pause", "pause_cycles"}) {
    if (!has(first)) continue;
    const absl::StatusOr<uint32_t> number = builder_.Event(*EventOfColumn(first));
    if (!number.ok()) return number.status();
  }
  for (const std::string& cell : cells_) {
    absl::StatusOr<Column> column = ColumnOf(cell);
    if (!column.ok()) return column.status();
    columns_.push_back(*std::move(column));
  }
  FindShares();
  const Table& table = builder_.table();
  if (table.columns.none() && table.events.empty()) {
    return Error(absl::StrCat("row ", reader_.row(),
                              ": names none of the columns that are known (t_ns, dt_ns, cycles, "
                              "instructions, ...): is it a header?"));
  }
  if (!Has(table.columns, Field::kT) && !Has(table.columns, Field::kDt)) {
    return Error(absl::StrCat("row ", reader_.row(),
                              ": has neither t_ns (when an interval ended) nor dt_ns (how long it "
                              "was): one of them is needed"));
  }
  return absl::OkStatus();
}

void CsvParser::FindShares() {
  for (Column& column : columns_) {
    if (column.kind != Column::Kind::kShare) continue;
    const std::string_view name(column.name);
    const std::string_view event = name.substr(0, name.size() - kShareSuffix.size());
    const auto of = std::ranges::find_if(columns_, [&](const Column& other) {
      return other.kind == Column::Kind::kEvent && other.name == event;
    });
    if (of == columns_.end()) {
      column.kind = Column::Kind::kIgnored;
      builder_.table().ignored.push_back(column.name);
    } else {
      column.number = of->number;
    }
  }
}

std::string CsvParser::TakeCell(const Column& column, const std::string& cell, Row& row) {
  using Kind = Column::Kind;
  if (column.kind == Kind::kVmName) vm_.name = cell;
  if (column.kind == Kind::kVmUuid) vm_.uuid = cell;
  if (column.kind == Kind::kKept) kept_cells_[column.number] = cell;
  if (column.kind == Kind::kState) {
    const std::optional<core::ThreadState> state = ParseState(cell);
    if (!state) {
      return absl::StrCat(
          Quoted(cell),
          " is none of S D I R T t Z X, blocked, runnable, stopped, paused, io-wait, "
          "exited");
    }
    row.state = *state;
  }
  if (column.kind == Kind::kShare && !cell.empty()) {
    const std::optional<double> share = ParseShare(cell);
    if (!share) {
      return absl::StrCat(Quoted(cell), " is not a share from 0 to 1");
    }
    shares_.emplace_back(static_cast<uint32_t>(column.number), *share);
  }
  const bool is_number = column.kind == Kind::kField || column.kind == Kind::kEvent ||
                         column.kind == Kind::kVmNumber || column.kind == Kind::kVmPid ||
                         column.kind == Kind::kVmStart;
  if (!is_number || cell.empty()) return "";
  const std::optional<uint64_t> number = ParseNumber<uint64_t>(WithoutZeros(cell));
  if (!number) {
    const bool digits = std::ranges::all_of(cell, [](char c) { return c >= '0' && c <= '9'; });
    return absl::StrCat(Quoted(cell), digits ? " is beyond 2^64" : " is not a whole number");
  }
  if (column.kind == Kind::kField) {
    std::string why = WhyNoValue(static_cast<Field>(column.number), *number);
    if (!why.empty()) return why;
    row.Set(static_cast<Field>(column.number), *number);
  }
  if (column.kind == Kind::kEvent) {
    counts_.emplace_back(static_cast<uint32_t>(column.number), *number);
  }
  if (column.kind == Kind::kVmNumber) vm_.number = *number;
  if (column.kind == Kind::kVmPid) vm_.pid = *number;
  if (column.kind == Kind::kVmStart) vm_.start_time = *number;
  return "";
}

void CsvParser::CleanVmName() {
  const std::string number = absl::StrCat("VM ", vm_.number);
  if (of_an_export_) {
    const std::string suffix = absl::StrCat(" (", number, ")");
    while (vm_.name.ends_with(suffix)) vm_.name.resize(vm_.name.size() - suffix.size());
    if (vm_.name == number) vm_.name.clear();
  } else if (vm_.name.empty()) {
    vm_.name = kNoCsvVm;
  }
}

absl::Status CsvParser::AddRow(const Row& row) {
  turns_.Add(shares_);
  std::ranges::sort(counts_);
  std::ranges::sort(shares_);
  Layout layout;
  std::vector<uint64_t> counts;
  std::vector<double> shares;
  auto next = counts_.begin();
  auto next_share = shares_.begin();
  for (uint32_t event = 0; event < builder_.table().events.size(); ++event) {
    const bool has = next != counts_.end() && next->first == event;
    const bool has_share = next_share != shares_.end() && next_share->first == event;
    if (has || has_share) {
      layout.events.push_back(event);
      counts.push_back(has ? next->second : 0);  // no count with a share: it had no turn
      shares.push_back(has_share ? next_share->second : 1);
    } else {
      layout.absent.push_back(event);
    }
    if (has) ++next;
    if (has_share) ++next_share;
  }
  if (shares_.empty()) shares.clear();
  return builder_.Add(row, layout, counts, shares);
}

absl::Status CsvParser::TakeRow() {
  if (cells_.size() != columns_.size()) {
    return Error(absl::StrCat("row ", reader_.row(), ": ", cells_.size(),
                              cells_.size() == 1 ? " cell" : " cells", " where the header names ",
                              columns_.size()));
  }
  Row row{.number = reader_.row()};
  vm_ = VmIdentity();
  counts_.clear();
  shares_.clear();
  kept_cells_.assign(keep_.size(), "");
  for (size_t i = 0; i < columns_.size(); ++i) {
    const std::string why = TakeCell(columns_[i], cells_[i], row);
    if (!why.empty()) return RowError(columns_[i], why);
  }
  CleanVmName();
  if (builder_.table().rows.empty() || vm_ != last_vm_) {
    last_vm_number_ = builder_.Vm(vm_);
    last_vm_ = vm_;
  }
  row.vm = last_vm_number_;
  if (absl::Status status = AddRow(row); !status.ok()) return status;
  for (const std::string_view cell : kept_cells_) builder_.table().kept.push_back(Keep(cell));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Table> ParseCsv(std::string_view text, const std::string& name,
                               std::span<const std::string_view> keep) {
  WholeText source(text);
  return CsvParser(source, name, keep).ReadWhole();
}

std::unique_ptr<RowReader> CsvRows(TextSource& source, const std::string& name) {
  return std::make_unique<CsvParser>(source, name, std::span<const std::string_view>());
}

}  // namespace vcpulse::importing

#include "monitor/import/csv_table.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/text.h"
#include "monitor/import/csv_reader.h"

namespace vcpulse::csv {
namespace {

constexpr std::array<std::string_view, kFields> kColumnNames = {"t_ns",
                                                                "dt_ns",
                                                                "vcpu",
                                                                "cycles",
                                                                "instructions",
                                                                "branches",
                                                                "branch_misses",
                                                                "cache_misses",
                                                                "ref_cycles",
                                                                "pause",
                                                                "pause_cycles",
                                                                "time_enabled_ns",
                                                                "time_running_ns",
                                                                "run_ns",
                                                                "run_delay_ns"};

// 146 years: sums of two stay within int64_t.
constexpr uint64_t kMaxTime_ns = uint64_t{1} << 62;
constexpr uint64_t kMaxVcpu = 65535;  // what a timeline's set may hold

constexpr std::string_view kNoVm = "csv";

std::optional<core::ThreadState> ParseState(std::string_view text) {
  using core::ThreadState;
  if (text.empty()) return ThreadState::kNotRead;
  if (text == "S" || text == "D" || text == "I" || text == "blocked") return ThreadState::kBlocked;
  if (text == "R" || text == "runnable") return ThreadState::kRunnable;
  if (text == "T" || text == "t" || text == "stopped") return ThreadState::kStopped;
  if (text == "Z" || text == "X" || text == "exited") return ThreadState::kExited;
  if (text == "paused") return ThreadState::kPaused;
  return std::nullopt;
}

// Why a cell cannot be a value of this field; empty where it is one.
std::string ParseCell(Field field, const std::string& cell, uint64_t& value) {
  const std::optional<uint64_t> number = ParseNumber<uint64_t>(cell);
  if (!number) {
    const bool digits = std::ranges::all_of(cell, [](char c) { return c >= '0' && c <= '9'; });
    return absl::StrCat(Quoted(cell), digits ? " is beyond 2^64" : " is no whole number");
  }
  value = *number;
  const bool is_time = field == Field::kT || field == Field::kDt;
  if (is_time && value >= kMaxTime_ns) return absl::StrCat(Quoted(cell), " is beyond 2^62 ns");
  if (field == Field::kDt && value == 0) return "0 is no length of an interval";
  if (field == Field::kVcpu && value > kMaxVcpu) {
    return absl::StrCat(Quoted(cell), " is beyond ", kMaxVcpu);
  }
  return "";
}

// As it is compared: perf writes "branch-misses", some tools a blank behind each comma.
std::string AsCompared(std::string_view written) {
  const size_t first = written.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  std::string name(written.substr(first, written.find_last_not_of(" \t") - first + 1));
  std::ranges::replace(name, '-', '_');
  return name;
}

// Reads one table.
class Parser {
 public:
  Parser(std::string_view text, const std::string& name, std::span<const std::string_view> keep)
      : reader_(text), keep_(keep), kept_at_(keep.size()) {
    table_.name = name;
    table_.kept_columns = keep.size();
  }

  absl::StatusOr<CsvTable> Parse() {
    absl::StatusOr<bool> row = reader_.Next(cells_);
    if (!row.ok()) return Named(row.status());
    if (!*row) return Error("empty: a header with the names of its columns is needed");
    if (absl::Status status = TakeHeader(); !status.ok()) return status;
    while (true) {
      row = reader_.Next(cells_);
      if (!row.ok()) return Named(row.status());
      if (!*row) break;
      if (absl::Status status = TakeRow(); !status.ok()) return status;
    }
    if (table_.rows.empty()) return Error("holds no row but the header");
    return std::move(table_);
  }

 private:
  absl::Status Named(const absl::Status& status) const {
    return absl::InvalidArgumentError(absl::StrCat(table_.name, ": ", status.message()));
  }
  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(table_.name, ": ", ToAbsl(what)));
  }
  absl::Status RowError(std::string_view column, std::string_view what) const {
    return Error(
        absl::StrCat("row ", reader_.row(), ", column ", ToAbsl(column), ": ", ToAbsl(what)));
  }

  uint32_t Intern(std::string_view text) {
    const auto [found, is_new] =
        numbers_.try_emplace(std::string(text), static_cast<uint32_t>(table_.texts.size()));
    if (is_new) table_.texts.emplace_back(text);
    return found->second;
  }

  absl::Status TakeHeader();
  absl::Status TakeRow();

  CsvReader reader_;
  std::span<const std::string_view> keep_;
  CsvTable table_;
  std::vector<std::string> cells_;
  size_t width_ = 0;
  std::array<std::optional<size_t>, kFields> field_at_{};  // which cell holds it
  std::optional<size_t> vm_at_;
  std::optional<size_t> state_at_;
  std::vector<std::optional<size_t>> kept_at_;
  std::unordered_map<std::string, uint32_t> numbers_;
};

absl::Status Parser::TakeHeader() {
  width_ = cells_.size();
  for (size_t i = 0; i < width_; ++i) {
    const std::string& name = cells_[i] = AsCompared(cells_[i]);
    if (std::find(cells_.begin(), cells_.begin() + static_cast<ptrdiff_t>(i), name) !=
        cells_.begin() + static_cast<ptrdiff_t>(i)) {
      return Error(absl::StrCat("row ", reader_.row(), ": two columns are named ", Quoted(name)));
    }
    if (name == "vm") {
      vm_at_ = i;
    } else if (name == "state") {
      state_at_ = i;
    } else if (const auto* field = std::ranges::find(kColumnNames, name);
               field != kColumnNames.end()) {
      const auto f = static_cast<size_t>(field - kColumnNames.begin());
      field_at_[f] = i;
      table_.columns.set(f);
    } else if (const auto kept = std::ranges::find(keep_, name); kept != keep_.end()) {
      kept_at_[static_cast<size_t>(kept - keep_.begin())] = i;
    } else {
      table_.ignored.push_back(name);
    }
  }
  if (table_.columns.none()) {
    return Error(absl::StrCat("row ", reader_.row(),
                              ": names none of the columns that are known (t_ns, dt_ns, cycles, "
                              "instructions, ...): is it a header?"));
  }
  if (!field_at_[static_cast<size_t>(Field::kT)] && !field_at_[static_cast<size_t>(Field::kDt)]) {
    return Error(absl::StrCat("row ", reader_.row(),
                              ": has neither t_ns (when an interval ended) nor dt_ns (how long it "
                              "was): one of them is needed"));
  }
  return absl::OkStatus();
}

absl::Status Parser::TakeRow() {
  if (cells_.size() != width_) {
    return Error(absl::StrCat("row ", reader_.row(), ": ", cells_.size(),
                              cells_.size() == 1 ? " cell" : " cells", " where the header names ",
                              width_));
  }
  if (table_.rows.size() == kMaxRows) {
    return absl::ResourceExhaustedError(
        absl::StrCat(table_.name, ": more than ", kMaxRows, " rows: split it"));
  }
  CsvRow row{.number = reader_.row()};
  for (size_t f = 0; f < kFields; ++f) {
    if (!field_at_[f] || cells_[*field_at_[f]].empty()) continue;
    const auto field = static_cast<Field>(f);
    const std::string why = ParseCell(field, cells_[*field_at_[f]], row.values[f]);
    if (!why.empty()) return RowError(ColumnName(field), why);
    row.present.set(f);
  }
  if (state_at_) {
    const std::string& cell = cells_[*state_at_];
    const std::optional<core::ThreadState> state = ParseState(cell);
    if (!state) {
      return RowError("state", absl::StrCat(Quoted(cell),
                                            " is none of S D I R T t Z X, blocked, runnable, "
                                            "stopped, paused, exited"));
    }
    row.state = *state;
  }
  const bool named = vm_at_ && !cells_[*vm_at_].empty();
  row.vm = Intern(named ? std::string_view(cells_[*vm_at_]) : kNoVm);
  for (const std::optional<size_t>& at : kept_at_) {
    table_.kept.push_back(Intern(at ? std::string_view(cells_[*at]) : ""));
  }
  table_.rows.push_back(row);
  return absl::OkStatus();
}

}  // namespace

std::string_view ColumnName(Field field) { return kColumnNames[static_cast<size_t>(field)]; }

std::string_view EventName(Field field) {
  switch (field) {
    case Field::kBranchMisses:
      return "branch-misses";
    case Field::kCacheMisses:
      return "cache-misses";
    case Field::kRefCycles:
      return "ref-cycles";
    case Field::kPauseCycles:
      return "cpu_clk_unhalted.pause";  // as core::FindSlots knows it
    default:
      return ColumnName(field);
  }
}

absl::StatusOr<CsvTable> ParseCsv(std::string_view text, const std::string& name,
                                  std::span<const std::string_view> keep) {
  return Parser(text, name, keep).Parse();
}

}  // namespace vcpulse::csv

#pragma once

// monitor/import makes timelines of counters that came from elsewhere. Bytes in, records out: no
// file, no clock, no terminal. csv_table, jsonl_table and perf_json read one format each into a
// Table; intervals finds what each of its rows covers, event_groups where each event is counted,
// and importer makes the records. The namespace is `importing`: `import` is a word of C++20.

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/core/sample.h"
#include "monitor/timeline/tick_columns.h"

namespace vcpulse::importing {

// What a row holds beside its counts: whole numbers.
enum class Field : uint8_t {
  kT,     // end of the interval, ns
  kDt,    // its length, ns
  kTick,  // rows of one tick were sampled together
  kWall,  // CLOCK_REALTIME at kT, ns
  kVcpu,
  kEpoch,  // number of the epoch in the recording that the file was made of
  kTid,
  kKvmId,
  kTimeEnabled,  // from here on: measured over the interval
  kTimeRunning,
  kRun,
  kRunDelay,
};
inline constexpr size_t kFields = 12;
inline constexpr size_t kFirstTime = static_cast<size_t>(Field::kTimeEnabled);

using FieldSet = std::bitset<kFields>;

inline bool Has(const FieldSet& fields, Field field) { return fields[static_cast<size_t>(field)]; }

// At most so many rows are in a table at once, about 200 bytes each. CSV and JSON lines are read
// batch by batch, so it limits how far their rows may be out of order.
inline constexpr size_t kMaxRows = 4'000'000;
inline constexpr size_t kMaxCounts = 40'000'000;  // of these rows together
inline constexpr size_t kMaxTableEvents = 256;    // names in one file
inline constexpr size_t kMaxRowEvents = core::kMaxEvents * core::kMaxGroups;
inline constexpr size_t kMaxLayouts = 10'000;               // different lists of events in one file
inline constexpr uint64_t kMaxTime_ns = uint64_t{1} << 62;  // 146 years: two fit into an int64_t
inline constexpr uint64_t kMaxVcpu = timeline::kMaxVcpus - 1;  // what a timeline's set may hold

// What tells two VMs apart; what the file does not say is empty or 0.
struct VmIdentity {
  std::string name;
  std::string uuid;
  uint64_t number = 0;  // in the recording that the file was made of
  uint64_t pid = 0;
  uint64_t start_time = 0;  // field 22 of /proc/PID/stat

  auto operator<=>(const VmIdentity&) const = default;
};

// The events of a row, as places in Table::events.
struct Layout {
  std::vector<uint32_t> events;  // counted, ascending: their counts are in this order
  std::vector<uint32_t> absent;  // asked for, and not counted

  auto operator<=>(const Layout&) const = default;
};

struct Row {
  uint64_t number = 0;     // of the row or line in the text, from 1
  uint32_t vm = 0;         // in Table::vms
  uint32_t layout = 0;     // in Table::layouts
  size_t first_count = 0;  // in Table::counts
  core::ThreadState state = core::ThreadState::kNotRead;
  FieldSet present;
  std::array<uint64_t, kFields> values{};

  std::optional<uint64_t> Value(Field field) const {
    const auto i = static_cast<size_t>(field);
    if (!present[i]) return std::nullopt;
    return values[i];
  }
  void Set(Field field, uint64_t value) {
    values[static_cast<size_t>(field)] = value;
    present.set(static_cast<size_t>(field));
  }
};

// Lines of one kind that hold no row.
struct Skipped {
  std::string what;  // for people: "no JSON object"
  uint64_t lines = 0;
  uint64_t first = 0;  // its number in the text
};

struct Table {
  std::string name;                 // of the file, begins every error message
  std::string unit = "row";         // what Row::number counts: "row" or "line"
  FieldSet columns;                 // that some row may have
  std::vector<std::string> events;  // perf's names
  std::vector<Layout> layouts;
  std::vector<VmIdentity> vms;  // as they appear in the text
  std::vector<Row> rows;
  std::vector<uint64_t> counts;
  // Beside each count, where groups take turns on the PMU: share of the time enabled that its group
  // was on it, below 0 where the thread never ran. Else empty.
  std::vector<double> shares;
  // Of each event: 0 where it is counted together with the others of 0, else a number of those that
  // take their turn together.
  std::vector<uint32_t> turns;
  std::vector<std::string> ignored;  // columns or keys of other names
  bool has_verdicts = false;         // an export's, which are judged anew
  std::vector<Skipped> skipped;

  void Skip(std::string_view what, uint64_t line);
  // Drops the rows with their counts, but those at these places, ascending.
  void KeepRows(std::span<const size_t> places);
  std::string absent_reason = "its cells are empty in the imported file";
  std::vector<std::string> host_side_events;  // that count the host too
  std::vector<std::string> notes;             // for people, kept in the timeline
  // Of the columns asked for by ParseCsv's `keep`, row by row.
  std::vector<std::string> texts;
  std::vector<uint32_t> kept;  // places in texts
  size_t kept_columns = 0;

  const std::string& Kept(size_t row, size_t column) const {
    return texts[kept[row * kept_columns + column]];
  }
  const Layout& LayoutOf(const Row& row) const { return layouts[row.layout]; }
  std::span<const uint64_t> CountsOf(const Row& row) const {
    return std::span(counts).subspan(row.first_count, LayoutOf(row).events.size());
  }
  // The number of an event by perf's name.
  std::optional<uint32_t> FindEvent(std::string_view event) const;
  // Whether an event of this name is in the list of some rows.
  bool IsCounted(std::string_view event) const;
  // Nothing where the row did not count it.
  std::optional<uint64_t> CountOf(const Row& row, std::optional<uint32_t> event) const;
};

// Makes a table, row by row.
class TableBuilder {
 public:
  explicit TableBuilder(const std::string& name) { table_.name = name; }

  Table& table() { return table_; }
  const Table& table() const { return table_; }

  // The number of an event; a new one where it is not known yet. ResourceExhausted for more than
  // kMaxTableEvents.
  absl::StatusOr<uint32_t> Event(std::string_view name);
  uint32_t Vm(const VmIdentity& vm);

  // Adds a row with its counts, one per event in `layout`, and their shares (empty, or as long).
  // ResourceExhausted beyond the limits above.
  absl::Status Add(Row row, const Layout& layout, std::span<const uint64_t> counts,
                   std::span<const double> shares = {});

  // Rows from `first` on with time_running_ns 0, time_enabled_ns and no count of the main group get
  // the events of the row before, or after, of their epoch (or vCPU) as counts of 0: their group
  // was not on the PMU, and no event came or went. Takes Table::turns as they are. Rows that come
  // later can be the ones after only where the file was read once before (Rewind).
  void Fill(size_t first);
  // All rows are dropped, and come once more; events, layouts and VMs keep their numbers.
  void Rewind();
  // The table, once all rows are in it: filled.
  Table Finish();

 private:
  // Rows of one epoch, or of one vCPU where the file knows no epochs.
  using EpochKey = std::tuple<uint32_t, uint64_t, uint64_t>;
  struct Neighbours {
    std::optional<uint32_t> last;   // layout of the row before
    std::optional<uint32_t> first;  // of the first row that needs no filling, of either reading
    bool any = false;               // there was such a row in this reading
  };

  static EpochKey KeyOf(const Row& row);
  absl::Status Error(const Row& row, std::string_view what) const;
  absl::StatusOr<uint32_t> Intern(const Row& row, const Layout& layout);

  Table table_;
  std::map<VmIdentity, uint32_t> vms_;
  std::map<Layout, uint32_t> layouts_;
  std::map<EpochKey, Neighbours> neighbours_;
};

// Finds which events of an export take their turn on the PMU together: neighbours that were on it
// for the same share of the time in every row.
class Turns {
 public:
  // The events of one row that take turns, in their order, and their shares (below 0: the thread
  // never ran).
  void Add(std::span<const std::pair<uint32_t, double>> shares);

  // Table::turns, from what all rows said.
  void Number(std::vector<uint32_t>& turns) const;

 private:
  struct Turn {
    std::optional<uint32_t> before;  // the event before it
    bool alone = false;              // it is not together with that one
  };
  std::map<uint32_t, Turn> events_;
};

// Reads the rows of a text, batch by batch and as often as needed.
class RowReader {
 public:
  explicit RowReader(const std::string& name) : builder_(name) {}
  virtual ~RowReader() = default;

  // Appends at most so many rows to the table; false where the text has ended. Errors:
  // InvalidArgument with the row or line, ResourceExhausted beyond the limits above; of the source.
  absl::StatusOr<bool> Read(size_t rows);
  // The first row comes next. The table loses its rows, and keeps what was learned of all of them:
  // events, layouts, VMs and turns.
  void Rewind();

  Table& table() { return builder_.table(); }
  const Table& table() const { return builder_.table(); }
  // All rows that there are, as one table.
  absl::StatusOr<Table> ReadWhole();

 protected:
  // Appends one row; false where the text has ended.
  virtual absl::StatusOr<bool> ReadRow() = 0;
  virtual void RewindText() = 0;

  TableBuilder builder_;
  Turns turns_;
};

// Why a number cannot be a value of this field, for people; empty where it can.
std::string WhyNoValue(Field field, uint64_t value);

// A share from 0 to 1, in decimals; nothing where the whole text is none.
std::optional<double> ParseShare(std::string_view text);

}  // namespace vcpulse::importing

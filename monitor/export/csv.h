#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "monitor/export/exporter.h"
#include "monitor/export/text_output.h"
#include "monitor/metric/interval.h"
#include "monitor/timeline/input.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::exporting {

// The columns of the events in a CSV file: one per event that any of the sets asked for, and one
// for the share of the time in which it was counted, where that event takes turns on the PMU.
class CsvColumns {
 public:
  struct Column {
    std::string event;   // perf's name
    std::string header;  // name of the column, each once
    bool is_share = false;
  };

  // Takes note of the events that a set asked for.
  void Add(const v1::VcpuSet& set);
  // Whether each event of a set has its columns.
  bool Covers(const v1::VcpuSet& set) const;

  // Those that `vcpulse import csv` knows come first and have its names ("branch_misses"), the
  // others theirs, in the order in which they came; a name that is another column's already has
  // "event:" in front of it.
  std::vector<Column> Columns() const;

 private:
  std::vector<std::string> events_;
  std::map<std::string, bool> in_turns_;  // by event
};

// A cell of a CSV file: in quotes where RFC 4180 wants that.
std::string CsvCell(std::string_view text);

// Hands each vCPU set that a tick of the file needs to `sink`, as often as chunks repeat it. Reads
// all chunks, but decodes none of their ticks; damaged ones are skipped. Errors: those of
// opening and reading a file.
absl::Status FindSets(const timeline::Input& input,
                      absl::FunctionRef<void(const v1::VcpuSet&)> sink);

// The columns before those of the events.
inline constexpr std::array<std::string_view, 12> kCsvColumnsBefore = {
    "t_ns",   "t_wall_ns", "dt_ns", "tick", "vm",  "vm_number",
    "vm_pid", "vm_uuid",   "epoch", "vcpu", "tid", "kvm_id"};
// And before and behind those of the metrics.
inline constexpr std::array<std::string_view, 5> kCsvColumnsBeforeMetrics = {
    "time_enabled_ns", "time_running_ns", "run_ns", "run_delay_ns", "state"};
inline constexpr std::array<std::string_view, 5> kCsvColumnsBehindMetrics = {
    "band", "raw_band", "rule", "confidence", "starved"};

// A timeline as CSV (RFC 4180, lines end in "\n"): a header, then a row per vCPU and tick with what
// jsonl says of it. What was not measured is an empty cell. `vm` is the VM's name, with its number
// behind it where another VM of the timeline had that name before; `vcpulse import csv` reads all
// that it knows of it.
class CsvExport final : public Exporter {
 public:
  explicit CsvExport(Sink sink) : out_(std::move(sink)) {}

  // Sets that will come: their events have a column. Before the first row; the sets that Add is
  // given before that are taken in by themselves.
  void Expect(const v1::VcpuSet& set) { columns_.Add(set); }

  // Errors: as Exporter::Add; InvalidArgument also for a set with an event that has no column, as
  // the header was written before.
  absl::Status Add(const timeline::Entry& entry) override;
  absl::Status Flush() override { return out_.Flush(); }
  // Writes the header where there was no row.
  absl::Status Finish() override;
  uint64_t unusable_ticks() const override { return intervals_.unusable_ticks(); }

 private:
  struct Prepared {
    std::vector<std::string> vcpus;  // the cells of each vCPU, by column of the set
    // The place of each event column in Epoch::events; none: it has no such event.
    std::vector<const metric::EventPlace*> events;
  };

  void WriteHeader();
  absl::Status TakeSet(const v1::VcpuSet& set);
  // What the VM is called in column `vm`.
  const std::string& LabelOf(const v1::VcpuSet& set);
  Prepared Prepare(const metric::Epoch& epoch);
  const Prepared& PreparedFor(const metric::Epoch& epoch);
  absl::Status AddRow(const metric::Interval& interval);
  void AddEvents(const metric::Interval& interval, const Prepared& prepared);
  void AddVerdict(const metric::Interval& interval);

  TextOutput out_;
  Clocks clocks_;
  metric::IntervalReader intervals_;
  CsvColumns columns_;
  std::vector<CsvColumns::Column> event_columns_;  // once the header is written
  bool has_header_ = false;
  std::map<uint32_t, std::string> labels_;  // by number of the VM
  std::set<std::string> used_labels_;
  std::unordered_map<const metric::Epoch*, Prepared> prepared_;
  const metric::Epoch* latest_ = nullptr;
  const Prepared* latest_prepared_ = nullptr;
};

}  // namespace vcpulse::exporting

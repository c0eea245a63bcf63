#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "monitor/core/verdict.h"
#include "monitor/export/event_columns.h"
#include "monitor/export/exporter.h"
#include "monitor/export/text_output.h"
#include "monitor/metric/interval.h"
#include "monitor/reading/labels.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::exporting {

// A column of the table, and what its cells hold.
struct TableColumn {
  enum class Cells { kInteger, kDecimal, kText, kBoolean };

  std::string name;
  Cells cells = Cells::kInteger;
  bool optional = true;  // else no cell is empty
};

// The cells of a row that are the same in all rows of a vCPU of an epoch: columns `vm` to `kvm_id`.
struct VcpuCells {
  size_t number = 0;  // of the vCPUs and epochs of this table, from 0: a key for what is made of it
  // The VM's name, with its number behind it where another VM of the timeline had that name before.
  std::string vm;
  uint32_t vm_number = 0;
  std::optional<uint32_t> vm_pid;
  std::optional<std::string> vm_uuid;
  uint32_t epoch = 0;
  uint32_t vcpu = 0;
  std::optional<uint32_t> tid;
  std::optional<uint32_t> kvm_id;
};

// The rows and columns of a timeline, of which CSV and Parquet are two ways to write: a row per
// vCPU and tick with what jsonl says of it, each value of its own type. docs/export.md lists the
// columns. Memory grows with the number of epochs alone. One thread.
class IntervalTable {
 public:
  using OnRow = absl::FunctionRef<absl::Status(const metric::Interval&)>;

  // Sets that will come: their events have a column. Before the first row; the sets that Add is
  // given before that are taken in by themselves.
  void Expect(const v1::VcpuSet& set) { event_columns_.Add(set); }

  // Hands each row that ends with this entry to `row`, which gives it to PutRow. Errors: those of
  // `row`; InvalidArgument where a second stream begins, and for a set with an event that has no
  // column, as the columns were asked for before.
  absl::Status Add(const timeline::Entry& entry, OnRow row);

  // In their order. They stay as they are from the first call on.
  const std::vector<TableColumn>& Columns();

  // Gives the values of a row to `cells`, in the order of the columns, by these of its functions:
  // AddInteger(of any integral type), AddDecimal(double, int decimals) for at most so many
  // decimals, AddText(std::string_view), AddBoolean(bool), AddEmpty(), and Add(const VcpuCells&)
  // for the eight columns of that. Columns() was called before.
  template <typename Cells>
  void PutRow(const metric::Interval& interval, Cells& cells);

  // In place of PutRow for a row that is not written: VMs are named as if it were.
  void PassRow(const metric::Interval& interval) { PreparedFor(interval.epoch); }

  // Begins another table that goes on with the next entry: its columns are those of the sets that
  // come from now on. Intervals, clocks and names of VMs go on.
  void BeginTable();

  uint64_t unusable_ticks() const { return intervals_.unusable_ticks(); }
  const std::optional<v1::Session>& session() const { return intervals_.session(); }

 private:
  struct Prepared {
    std::vector<VcpuCells> vcpus;  // by column of the set
    // The place of each event column in Epoch::events; null: it has no such event.
    std::vector<const metric::EventPlace*> events;
  };

  // What the VM is called in column `vm`.
  const std::string& LabelOf(const v1::VcpuSet& set);
  Prepared Prepare(const metric::Epoch& epoch);
  const Prepared& PreparedFor(const metric::Epoch& epoch);

  Clocks clocks_;
  metric::IntervalReader intervals_;
  EventColumns event_columns_;
  std::vector<EventColumns::Column> events_;  // once there are columns
  std::vector<TableColumn> columns_;
  std::map<uint32_t, std::string> labels_;  // by number of the VM
  std::set<std::string> used_labels_;
  std::unordered_map<const metric::Epoch*, Prepared> prepared_;
  size_t prepared_vcpus_ = 0;
  const metric::Epoch* latest_ = nullptr;
  const Prepared* latest_prepared_ = nullptr;
};

template <typename Cells>
void IntervalTable::PutRow(const metric::Interval& interval, Cells& cells) {
  const auto integer = [&cells](const auto& number) {
    number ? cells.AddInteger(*number) : cells.AddEmpty();
  };
  const auto decimal = [&cells](const std::optional<double>& number, int decimals) {
    number ? cells.AddDecimal(*number, decimals) : cells.AddEmpty();
  };
  const auto text = [&cells](const std::optional<std::string_view>& name) {
    name ? cells.AddText(*name) : cells.AddEmpty();
  };
  const Prepared& prepared = PreparedFor(interval.epoch);
  const core::VcpuDelta& delta = interval.delta;
  const int64_t end_ns = interval.EndNs();
  cells.AddInteger(end_ns);
  integer(clocks_.Realtime(end_ns));
  cells.AddInteger(delta.interval_ns);
  cells.AddInteger(interval.tick);
  cells.Add(prepared.vcpus[interval.column]);
  for (size_t i = 0; i < events_.size(); ++i) {
    const metric::EventPlace* place = prepared.events[i];
    if (place == nullptr) {
      cells.AddEmpty();
    } else if (!events_[i].is_share) {
      integer(interval.CountOf(*place).count);
    } else if (interval.InTurns(*place)) {
      decimal(interval.CountOf(*place).share, kShareDecimals);
    } else {
      cells.AddEmpty();
    }
  }
  cells.AddInteger(delta.time_enabled_ns);
  cells.AddInteger(delta.time_running_ns);
  integer(delta.run_ns);
  integer(delta.run_delay_ns);
  text(reading::StateName(delta.state));
  ForEachRowMetric(
      [&](const metric::Info& info) { decimal(info.of(interval).Value(), info.row_decimals); });
  const core::Verdict& verdict = interval.verdict;
  text(reading::BandName(verdict.band));
  text(reading::BandName(verdict.raw_band));
  if (verdict.band != core::Band::kNone) {
    cells.AddText(core::ToString(verdict.rule));
  } else {
    cells.AddEmpty();
  }
  if (verdict.confidence_pct > 0) {
    cells.AddDecimal(verdict.confidence_pct / 100.0, 2);
  } else {
    cells.AddEmpty();
  }
  const std::optional<bool> starved = interval.Starved();
  starved ? cells.AddBoolean(*starved) : cells.AddEmpty();
}

}  // namespace vcpulse::exporting

#include "monitor/export/interval_table.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"

namespace vcpulse::exporting {
namespace {

using Cells = TableColumn::Cells;

// PutRow gives the values in this order. Those before the columns of the events...
const TableColumn kColumnsBefore[] = {{"t_ns", Cells::kInteger, false},
                                      {"t_wall_ns"},
                                      {"dt_ns", Cells::kInteger, false},
                                      {"tick"},
                                      {"vm", Cells::kText, false},
                                      {"vm_number", Cells::kInteger, false},
                                      {"vm_pid"},
                                      {"vm_uuid", Cells::kText},
                                      {"epoch", Cells::kInteger, false},
                                      {"vcpu", Cells::kInteger, false},
                                      {"tid"},
                                      {"kvm_id"}};
// ...before and behind those of the metrics.
const TableColumn kColumnsBeforeMetrics[] = {{"time_enabled_ns"},
                                             {"time_running_ns"},
                                             {"run_ns"},
                                             {"run_delay_ns"},
                                             {"state", Cells::kText}};
const TableColumn kColumnsBehindMetrics[] = {{"band", Cells::kText},
                                             {"raw_band", Cells::kText},
                                             {"rule", Cells::kText},
                                             {"confidence", Cells::kDecimal},
                                             {"starved", Cells::kBoolean}};

}  // namespace

absl::Status IntervalTable::Add(const timeline::Entry& entry, OnRow row) {
  if (const auto* snapshot = std::get_if<v1::ClockSnapshot>(&entry.record)) {
    clocks_.Take(*snapshot);
  } else if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    if (columns_.empty()) {
      event_columns_.Add(*set);
    } else if (!event_columns_.Covers(*set)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "VM ", set->vm(), " counts other events from ", set->mono_ns() / 1'000'000'000,
          " s of uptime on, and the columns were written before: export from a file, whose events "
          "are looked for before"));
    }
  }
  return intervals_.Add(entry, row);
}

const std::vector<TableColumn>& IntervalTable::Columns() {
  if (!columns_.empty()) return columns_;
  std::vector<TableColumn> behind(std::begin(kColumnsBeforeMetrics),
                                  std::end(kColumnsBeforeMetrics));
  ForEachRowMetric([&behind](const metric::Info& info) {
    behind.push_back({std::string(info.key), Cells::kDecimal});
  });
  behind.insert(behind.end(), std::begin(kColumnsBehindMetrics), std::end(kColumnsBehindMetrics));
  columns_.assign(std::begin(kColumnsBefore), std::end(kColumnsBefore));
  std::vector<std::string_view> taken;
  taken.reserve(columns_.size() + behind.size());
  for (const TableColumn& column : columns_) taken.push_back(column.name);
  for (const TableColumn& column : behind) taken.push_back(column.name);
  events_ = event_columns_.Columns(taken);
  for (const EventColumns::Column& event : events_) {
    columns_.push_back({event.header, event.is_share ? Cells::kDecimal : Cells::kInteger});
  }
  columns_.insert(columns_.end(), behind.begin(), behind.end());
  return columns_;
}

void IntervalTable::BeginTable() {
  event_columns_ = EventColumns();
  events_.clear();
  columns_.clear();
  prepared_.clear();
  prepared_vcpus_ = 0;
  latest_ = nullptr;
  latest_prepared_ = nullptr;
}

const std::string& IntervalTable::LabelOf(const v1::VcpuSet& set) {
  const auto known = labels_.find(set.vm());
  if (known != labels_.end()) return known->second;
  const std::string number = absl::StrCat("VM ", set.vm());
  std::string label = set.instance().name().empty() ? number : set.instance().name();
  while (!used_labels_.insert(label).second) label += absl::StrCat(" (", number, ")");
  return labels_.emplace(set.vm(), std::move(label)).first->second;
}

IntervalTable::Prepared IntervalTable::Prepare(const metric::Epoch& epoch) {
  Prepared prepared;
  const v1::VmInstance& instance = epoch.set.instance();
  VcpuCells cells;
  cells.vm = LabelOf(epoch.set);
  cells.vm_number = epoch.set.vm();
  if (instance.pid() != 0) cells.vm_pid = instance.pid();
  if (!instance.uuid().empty()) cells.vm_uuid = instance.uuid();
  cells.epoch = epoch.set.epoch();
  for (const v1::Vcpu& vcpu : epoch.set.vcpus()) {
    cells.number = prepared_vcpus_++;
    cells.vcpu = vcpu.index();
    cells.tid = vcpu.tid() != 0 ? std::optional(vcpu.tid()) : std::nullopt;
    cells.kvm_id = vcpu.has_kvm_id() ? std::optional(vcpu.kvm_id()) : std::nullopt;
    prepared.vcpus.push_back(cells);
  }
  for (const EventColumns::Column& column : events_) {
    const auto place = std::ranges::find(epoch.events, column.event, &metric::EventPlace::name);
    prepared.events.push_back(place == epoch.events.end() ? nullptr : &*place);
  }
  return prepared;
}

const IntervalTable::Prepared& IntervalTable::PreparedFor(const metric::Epoch& epoch) {
  if (latest_ == &epoch) return *latest_prepared_;
  auto found = prepared_.find(&epoch);
  if (found == prepared_.end()) found = prepared_.emplace(&epoch, Prepare(epoch)).first;
  latest_ = &epoch;
  latest_prepared_ = &found->second;
  return found->second;
}

}  // namespace vcpulse::exporting

#include "monitor/report/vcpu_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"
#include "monitor/report/text_format.h"

namespace vcpulse::report {
namespace {

using metric::Metric;

// A band is coloured where the vCPU spent at least half of its time in it.
constexpr double kColouredFrom = 0.5;
// The share of waiting from which a thread counts as starved within a tick, here for a whole run.
constexpr double kStarvedFrom = 0.1;

// Those that everybody wants to see.
constexpr std::array kShown = {Metric::kHalted,    Metric::kSpinning, Metric::kProductive,
                               Metric::kUnknown,   Metric::kStarved,  Metric::kIpc,
                               Metric::kResidency, Metric::kRunDelay};
// Without counters a tick in which a vCPU ran at all is UNKNOWN, so that says less than how long it
// ran.
constexpr std::array kShownDegraded = {Metric::kHalted, Metric::kResidency, Metric::kStarved,
                                       Metric::kRunDelay};
constexpr std::array<const char*, 2> kCounts = {"cycles", "instructions"};

// What a row of the phase table is of.
enum class PhaseRows { kVcpu, kVm, kAllVms };

PhaseRows PhaseRowsFor(size_t phases, const Vms& vms, size_t at_most, const TextOptions& options) {
  size_t vcpus = options.vcpu ? vms.size() : 0;
  for (const auto* const vm : vms) vcpus += options.vcpu ? 0 : vm->second.vcpus.size();
  if (!options.brief && phases * vcpus <= at_most) return PhaseRows::kVcpu;
  return vms.size() == 1 || phases * vms.size() <= at_most ? PhaseRows::kVm : PhaseRows::kAllVms;
}

struct Columns {
  std::vector<Metric> metrics;
  std::vector<Metric> further;  // behind the counts
  bool degraded = false;
  bool is_hint = false;
};

Columns ColumnsFor(const std::vector<const VmSummary*>& vms, const TextOptions& options) {
  Columns columns{.degraded = !vms.empty() && std::ranges::all_of(vms, [](const VmSummary* vm) {
                    return IsDegraded(*vm);
                  })};
  columns.is_hint =
      std::ranges::any_of(vms, [](const VmSummary* vm) { return HasIpcSpinning(*vm); });
  if (columns.degraded) {
    columns.metrics.assign(kShownDegraded.begin(), kShownDegraded.end());
  } else {
    columns.metrics.assign(kShown.begin(), kShown.end());
  }
  for (const Metric metric : options.columns) {
    if (std::ranges::find(columns.metrics, metric) == columns.metrics.end()) {
      columns.further.push_back(metric);
    }
  }
  return columns;
}

std::string LabelOf(const Columns& columns, Metric metric) {
  if (columns.degraded && metric == Metric::kResidency) return "RAN";
  std::string label(metric::InfoOf(metric).label);
  if (metric == Metric::kSpinning && columns.is_hint) label += '?';
  return label;
}

Colour ColourOf(Metric metric, double value) {
  if (metric == Metric::kStarved) return value >= kStarvedFrom ? Colour::kRed : Colour::kNone;
  if (value < kColouredFrom) return Colour::kNone;
  if (metric == Metric::kHalted) return Colour::kDim;
  if (metric == Metric::kSpinning) return Colour::kYellow;
  return metric == Metric::kProductive ? Colour::kGreen : Colour::kNone;
}

// The share of time on a CPU, host or guest.
std::optional<double> RanShare(const metric::Totals& totals) {
  if (totals.MeasuredNs() <= 0) return std::nullopt;
  return std::min(1.0, totals.Of(Metric::kRunning).whole / totals.MeasuredNs());
}

Table::Cell MetricCell(const metric::Totals& totals, Metric metric, bool degraded) {
  if (degraded && metric == Metric::kResidency) return {Percent(RanShare(totals))};
  const std::optional<double> value = totals.Value(metric);
  return {MetricText(metric::InfoOf(metric), value), ColourOf(metric, value.value_or(0))};
}

std::string CountText(const VcpuSummary& vcpu, const std::string& event) {
  const EventTotal* total = vcpu.FindEvent(event);
  if (total == nullptr || !total->Raw()) return "-";
  std::string text = Units(*total->Scaled());
  if (total->IsEstimate()) text = "~" + text;
  if (total->IsPartOf(vcpu.totals.MeasuredNs())) text += '+';
  return text;
}

std::string TidText(uint32_t tid) { return tid == 0 ? "-" : absl::StrCat(tid); }

// Which row comes first: by the metric asked for, else by what one looks for.
double RankOf(const VcpuRow& row, const std::optional<Metric>& sort) {
  constexpr double kNotMeasured = -1;
  constexpr double kNeverOpened = -2;
  if (row.vcpu == nullptr) return kNeverOpened;
  if (sort) return row.vcpu->Value(*sort).value_or(kNotMeasured);
  return row.vcpu->Value(Metric::kSpinning).value_or(0) +
         row.vcpu->Value(Metric::kStarved).value_or(0);
}

metric::Totals TotalsOf(const VmSummary& vm) {
  metric::Totals totals;
  for (const auto& [index, vcpu] : vm.vcpus) totals.Add(vcpu.totals);
  return totals;
}

}  // namespace

bool IsDegraded(const VmSummary& vm) {
  return !vm.epochs.empty() && std::ranges::all_of(vm.epochs, [](const auto& entry) {
    return entry.second.set.event_set() == "degraded";
  });
}

std::string DegradedText(const Report& report) {
  std::vector<std::string> degraded;
  for (const auto& [number, vm] : report.summary.vms()) {
    if (IsDegraded(vm)) degraded.push_back(VmLabel(number, vm));
  }
  const std::optional<v1::Session>& session = report.summary.session();
  return reading::DegradedText(degraded, report.summary.vms().size(),
                               session ? session->degraded_reason() : "");
}

bool HasIpcSpinning(const VmSummary& vm) {
  return std::ranges::any_of(vm.vcpus, [](const auto& entry) {
    return entry.second.rule_ns[static_cast<size_t>(core::Rule::kIpcLow)] > 0;
  });
}

std::string VmLabel(uint32_t number, const VmSummary& vm) {
  const std::string& name = vm.instance.name();
  return name.empty() ? absl::StrCat(number) : absl::StrCat(number, " \"", Printable(name), "\"");
}

std::vector<VcpuRow> RowsOf(const Vms& vms, const TextOptions& options) {
  std::vector<VcpuRow> rows;
  for (const auto* const entry : vms) {
    const auto& [number, vm] = *entry;
    std::map<uint32_t, VcpuRow> by_index;
    for (const auto& [epoch_number, epoch] : vm.epochs) {
      for (const v1::UnopenedVcpu& vcpu : epoch.set.unopened_vcpus()) {
        by_index[vcpu.index()] = {.vm = number, .index = vcpu.index(), .tid = vcpu.tid()};
      }
    }
    for (const auto& [index, vcpu] : vm.vcpus) {
      by_index[index] = {.vm = number,
                         .index = index,
                         .tid = vcpu.tids.empty() ? 0 : vcpu.tids.back(),
                         .vcpu = &vcpu};
    }
    for (const auto& [index, row] : by_index) {
      if (!options.vcpu || *options.vcpu == index) rows.push_back(row);
    }
  }
  if (options.sort || options.worst_first) {
    std::ranges::stable_sort(rows, std::greater{},
                             [&](const VcpuRow& row) { return RankOf(row, options.sort); });
  }
  return rows;
}

std::string RenderVcpuTable(const Summary& summary, const std::vector<VcpuRow>& rows, bool with_vm,
                            const TextOptions& options) {
  if (rows.empty()) return "no vCPU was recorded\n";
  std::vector<const VmSummary*> vms;
  vms.reserve(rows.size());
  for (const VcpuRow& row : rows) vms.push_back(&summary.vms().at(row.vm));
  const Columns columns = ColumnsFor(vms, options);
  std::vector<std::string> header;
  if (with_vm) header.emplace_back("VM");
  header.emplace_back("vCPU");
  const bool has_tids = std::ranges::any_of(rows, [](const VcpuRow& row) { return row.tid != 0; });
  if (has_tids) header.emplace_back("TID");
  for (const Metric metric : columns.metrics) header.push_back(LabelOf(columns, metric));
  if (!columns.degraded) header.insert(header.end(), {"cycles", "instr"});
  for (const Metric metric : columns.further) header.push_back(LabelOf(columns, metric));

  Table table(header);
  for (const VcpuRow& row : rows) {
    std::vector<Table::Cell> cells;
    if (with_vm) cells.push_back({VmLabel(row.vm, summary.vms().at(row.vm))});
    cells.push_back({absl::StrCat(row.index)});
    if (has_tids) cells.push_back({TidText(row.tid)});
    if (row.vcpu != nullptr) {
      for (const Metric metric : columns.metrics) {
        cells.push_back(MetricCell(row.vcpu->totals, metric, columns.degraded));
      }
      if (!columns.degraded) {
        for (const char* const event : kCounts) cells.push_back({CountText(*row.vcpu, event)});
      }
      for (const Metric metric : columns.further) {
        cells.push_back(MetricCell(row.vcpu->totals, metric, columns.degraded));
      }
    }
    cells.resize(header.size(), Table::Cell{"-"});
    table.AddRow(std::move(cells));
  }
  return table.Render(options.colour);
}

std::string RenderVmTable(const Report& report, const Vms& vms, const TextOptions& options) {
  std::vector<const VmSummary*> summaries;
  summaries.reserve(vms.size());
  for (const auto* const vm : vms) summaries.push_back(&vm->second);
  const Columns columns = ColumnsFor(summaries, options);
  std::vector<std::string> header = {"VM", "PID", "vCPUs"};
  for (const Metric metric : columns.metrics) header.push_back(LabelOf(columns, metric));
  header.insert(header.end(), {"samples", "gaps"});
  uint64_t of_all = 0;  // ticks that no VM has
  for (const auto& [key, total] : report.summary.gaps()) of_all += total.ticks;
  Table table(header);
  for (const auto* const entry : vms) {
    const auto& [number, vm] = *entry;
    const metric::Totals totals = TotalsOf(vm);
    std::vector<Table::Cell> cells = {{VmLabel(number, vm)},
                                      {TidText(vm.instance.pid())},
                                      {absl::StrCat(RowsOf({entry}, {}).size())}};
    for (const Metric metric : columns.metrics)
      cells.push_back(MetricCell(totals, metric, columns.degraded));
    uint64_t gaps = of_all;
    for (const auto& [key, total] : vm.gaps) gaps += total.ticks;
    cells.push_back({absl::StrCat(vm.samples)});
    cells.push_back({absl::StrCat(gaps)});
    table.AddRow(std::move(cells));
  }
  return table.Render(options.colour);
}

std::string RenderPhaseTable(const Report& report, const Vms& vms, size_t at_most,
                             const TextOptions& options) {
  const std::vector<PhaseTotals::Phase>& phases = report.summary.phases().phases();
  const PhaseRows of = PhaseRowsFor(phases.size(), vms, at_most, options);
  std::vector<const VmSummary*> summaries;
  summaries.reserve(vms.size());
  for (const auto* const vm : vms) summaries.push_back(&vm->second);
  const Columns columns = ColumnsFor(summaries, options);
  std::vector<std::string> header = {"phase", "spans", "length"};
  if (of == PhaseRows::kVm || vms.size() > 1) header.emplace_back("VM");
  if (of == PhaseRows::kVcpu) header.emplace_back("vCPU");
  for (const Metric metric : columns.metrics) header.push_back(LabelOf(columns, metric));
  for (const Metric metric : columns.further) header.push_back(LabelOf(columns, metric));
  Table table(header);
  size_t rows = 0;
  const auto add = [&](std::vector<Table::Cell> cells, const metric::Totals& totals) {
    if (totals.MeasuredNs() <= 0 || ++rows > at_most) return;
    for (const auto* const shown : {&columns.metrics, &columns.further}) {
      for (const Metric metric : *shown) {
        cells.push_back(MetricCell(totals, metric, columns.degraded));
      }
    }
    table.AddRow(std::move(cells));
  };
  for (size_t i = 0; i < phases.size(); ++i) {
    const int64_t length_ns =
        report.summary.phases().LengthNs(i, report.summary.last_mono_ns().value_or(0));
    const std::vector<Table::Cell> phase = {{Printable(phases[i].name)},
                                            {absl::StrCat(phases[i].spans)},
                                            {DurationText(static_cast<double>(length_ns))}};
    metric::Totals of_all;
    for (const auto* const entry : vms) {
      const auto& [number, vm] = *entry;
      std::vector<Table::Cell> first = phase;
      if (of == PhaseRows::kVm || vms.size() > 1) first.push_back({VmLabel(number, vm)});
      metric::Totals of_vm;
      for (const auto& [index, vcpu] : vm.vcpus) {
        if (options.vcpu && *options.vcpu != index) continue;
        const auto found = phases[i].vcpus.find({number, index});
        if (found == phases[i].vcpus.end()) continue;
        of_vm.Add(found->second);
        if (of != PhaseRows::kVcpu) continue;
        std::vector<Table::Cell> cells = first;
        cells.push_back({absl::StrCat(index)});
        add(std::move(cells), found->second);
      }
      if (of == PhaseRows::kVm) add(std::move(first), of_vm);
      of_all.Add(of_vm);
    }
    if (of == PhaseRows::kAllVms) {
      std::vector<Table::Cell> cells = phase;
      cells.push_back({absl::StrCat("all ", vms.size())});
      add(std::move(cells), of_all);
    }
  }
  if (rows == 0) return "";
  std::string text = table.Render(options.colour);
  if (rows > at_most) {
    absl::StrAppend(&text, Plural(rows - at_most, "more row"),
                    " (--phase NAME reports one phase, --top 0 shows all)\n");
  } else if (of == PhaseRows::kAllVms) {
    text += "(--vm VM shows the phases of one VM, --top 0 of each vCPU)\n";
  }
  if (report.summary.phases().spans_omitted() > 0) {
    absl::StrAppend(&text, Plural(report.summary.phases().spans_omitted(), "span"),
                    " of further phases left out\n");
  }
  if (report.from_ns.value_or(0) > 0) {
    text += "what lies before the first marker of this part is in no row\n";
  }
  if (report.summary.phases().CameLate()) {
    text += "a marker came later than its ticks: those count for the phase before it\n";
  }
  return text;
}

}  // namespace vcpulse::report

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "monitor/prometheus/exposition.h"
#include "monitor/prometheus/vcpu_totals.h"
#include "monitor/reading/labels.h"

namespace vcpulse::prometheus {
namespace {

using metric::Metric;
using Type = Exposition::Type;

// What the series of a level begin with; `of` stands before the help of a vCPU's counter.
struct LevelWords {
  MetricsLevel level;
  std::string_view prefix;
  std::string_view of;
};
constexpr std::string_view kVcpuPrefix = "vcpulse_vcpu_";
constexpr std::array<LevelWords, 3> kLevels = {{
    {.level = MetricsLevel::kHost, .prefix = "vcpulse_host_", .of = "All VMs together: "},
    {.level = MetricsLevel::kVm, .prefix = "vcpulse_vm_", .of = "All vCPUs of a VM together: "},
    {.level = MetricsLevel::kVcpu, .prefix = kVcpuPrefix, .of = ""},
}};

// Sums, and the labels that tell them from any others of their level; those it does not have are
// empty.
struct Row {
  const IntervalTotals* sums = nullptr;
  std::string vm;
  std::string vcpu;
  std::string pid;
};

std::vector<Row> RowsOf(const RecordingTotals& totals, MetricsLevel level) {
  if (level == MetricsLevel::kHost) return {Row{.sums = &totals.sum}};
  std::vector<Row> rows;
  for (const auto& [number, vm] : totals.vms) {
    Row row{.sums = &vm.sum, .vm = VmLabel(vm.instance), .pid = PidLabel(vm.instance)};
    if (level == MetricsLevel::kVm) rows.push_back(row);
    if (level != MetricsLevel::kVcpu) continue;
    for (const auto& [index, vcpu] : vm.vcpus) {
      row.sums = &vcpu;
      row.vcpu = std::to_string(index);
      rows.push_back(row);
    }
  }
  return rows;
}

void AddBands(Exposition& out, const LevelWords& words, const std::vector<Row>& rows) {
  out.Begin(absl::StrCat(ToAbsl(words.prefix), "band_seconds_total"), Type::kCounter,
            absl::StrCat(ToAbsl(words.of),
                         "Time of each vCPU by what it did: halted, spinning, productive or "
                         "unknown."));
  for (const Row& row : rows) {
    for (const Metric band :
         {Metric::kHalted, Metric::kSpinning, Metric::kProductive, Metric::kUnknown}) {
      out.Add({{"vm", row.vm},
               {"vcpu", row.vcpu},
               {"pid", row.pid},
               {"band", metric::InfoOf(band).key}},
              ToSeconds(row.sums->totals.Of(band).part));
    }
  }
}

void AddCounters(Exposition& out, const LevelWords& words, const std::vector<Row>& rows) {
  for (const metric::Info& info : metric::Table()) {
    for (size_t i = 0; i < info.counters.size(); ++i) {
      const metric::Counter& counter = info.counters[i];
      if (counter.of == nullptr) continue;
      const std::string_view name = counter.name.substr(kVcpuPrefix.size());
      out.Begin(absl::StrCat(ToAbsl(words.prefix), ToAbsl(name)), Type::kCounter,
                absl::StrCat(ToAbsl(words.of), ToAbsl(counter.help)));
      for (const Row& row : rows) {
        const std::optional<double>& sum = row.sums->counters[static_cast<size_t>(info.metric)][i];
        if (!sum) continue;
        out.Add({{"vm", row.vm}, {"vcpu", row.vcpu}, {"pid", row.pid}}, *sum / counter.unit);
      }
    }
  }
}

void AddStates(Exposition& out, const VcpuStates& states, std::string_view vm,
               std::string_view pid) {
  for (const auto& [state, count] : {std::pair{"counters", states.counters},
                                     {"no-counters", states.no_counters},
                                     {"not-opened", states.not_opened}}) {
    out.Add({{"vm", vm}, {"pid", pid}, {"state", state}}, count);
  }
}

void AddHost(Exposition& out, const RecordingTotals& totals) {
  out.Begin("vcpulse_build_info", Type::kGauge, "Always 1; the labels say what runs here.");
  out.Add({{"version", totals.version}}, uint64_t{1});
  if (!totals.reader.empty()) {
    out.Begin("vcpulse_reader_info", Type::kGauge,
              "Always 1; how counters are read: bpf, or read(2), which interrupts running vCPUs.");
    out.Add({{"reader", totals.reader}}, uint64_t{1});
  }
  out.Begin("vcpulse_agent_labels", Type::kGauge,
            "Always 1; the labels say who the host is among many.");
  std::vector<std::string> names;
  names.reserve(totals.labels.size());
  for (const auto& [key, value] : totals.labels) names.push_back("label_" + key);
  std::vector<Exposition::Label> labels = {{"agent", totals.agent}};
  for (size_t i = 0; i < names.size(); ++i) labels.emplace_back(names[i], totals.labels[i].second);
  out.Add(labels, uint64_t{1});
}

void AddVms(Exposition& out, const RecordingTotals& totals, MetricsLevel level) {
  uint64_t running = 0;
  VcpuStates all;
  for (const auto& [number, vm] : totals.vms) {
    if (vm.ended_mono_ns) continue;
    ++running;
    all.counters += vm.states.counters;
    all.no_counters += vm.states.no_counters;
    all.not_opened += vm.states.not_opened;
  }
  out.Begin("vcpulse_vms", Type::kGauge, "VMs that are recorded now.");
  out.Add({}, running);
  out.Begin("vcpulse_host_vcpus", Type::kGauge,
            "vCPUs of all VMs by what is read: hardware counters, no counters, or nothing.");
  AddStates(out, all, "", "");
  if (level < MetricsLevel::kVm) return;
  out.Begin("vcpulse_vm_info", Type::kGauge, "Always 1; the labels say which VM it is.");
  for (const auto& [number, vm] : totals.vms) {
    out.Add({{"vm", VmLabel(vm.instance)},
             {"pid", PidLabel(vm.instance)},
             {"uuid", vm.instance.uuid()}},
            uint64_t{1});
  }
  out.Begin("vcpulse_vm_vcpus", Type::kGauge,
            "vCPUs of a VM by what is read: hardware counters, no counters, or nothing.");
  for (const auto& [number, vm] : totals.vms) {
    if (vm.ended_mono_ns) continue;
    AddStates(out, vm.states, VmLabel(vm.instance), PidLabel(vm.instance));
  }
}

void AddGaps(Exposition& out, const RecordingTotals& totals) {
  out.Begin("vcpulse_gaps_total", Type::kCounter, "Gaps in the timeline, by reason.");
  for (const auto& [reason, gaps] : totals.gaps) {
    out.Add({{"reason", reading::GapReasonName(reason)}}, gaps.records);
  }
  out.Begin("vcpulse_gap_ticks_total", Type::kCounter,
            "Ticks that the gaps lack, by reason; of one VM or of all.");
  for (const auto& [reason, gaps] : totals.gaps) {
    out.Add({{"reason", reading::GapReasonName(reason)}}, gaps.ticks);
  }
}

void AddLateness(Exposition& out, const RecordingTotals& totals) {
  out.Begin("vcpulse_tick_lateness_seconds", Type::kHistogram,
            "How long after its deadline the sampling thread woke for a tick.");
  uint64_t ticks = 0;
  for (size_t i = 0; i < totals.lateness.size(); ++i) {
    ticks += totals.lateness[i];
    const bool is_last = i == kLatenessBounds.size();
    out.Add({{"le", is_last ? "+Inf" : NumberText(kLatenessBounds[i])}}, ticks, "_bucket");
  }
  out.Add({}, ToSeconds(static_cast<double>(totals.lateness_ns)), "_sum");
  out.Add({}, ticks, "_count");
}

}  // namespace

std::string VmLabel(const v1::VmInstance& instance) {
  if (!instance.name().empty()) return instance.name();
  if (!instance.uuid().empty()) return instance.uuid();
  return std::to_string(instance.pid());
}

std::string PidLabel(const v1::VmInstance& instance) {
  return instance.pid() == 0 ? "" : std::to_string(instance.pid());
}

std::string TextOf(const RecordingTotals& totals, MetricsLevel level) {
  Exposition out;
  AddHost(out, totals);
  AddVms(out, totals, level);
  for (const LevelWords& words : kLevels) {
    if (words.level > level) break;
    const std::vector<Row> rows = RowsOf(totals, words.level);
    AddBands(out, words, rows);
    AddCounters(out, words, rows);
  }
  out.Begin("vcpulse_ticks_total", Type::kCounter, "Ticks that brought a sample.");
  out.Add({}, totals.ticks);
  AddGaps(out, totals);
  AddLateness(out, totals);
  return out.text();
}

}  // namespace vcpulse::prometheus

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "monitor/metrics/exposition.h"
#include "monitor/metrics/vcpu_totals.h"
#include "monitor/reading/labels.h"

namespace vcpulse::metrics {
namespace {

using Type = Exposition::Type;

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

// What a person calls the VM.
std::string NameOf(const v1::VmInstance& instance) {
  if (!instance.name().empty()) return instance.name();
  if (!instance.uuid().empty()) return instance.uuid();
  return std::to_string(instance.pid());
}

// One family with a series per vCPU; `value` gives nothing for those that have none.
template <typename Value>
void AddPerVcpu(Exposition& out, const RecordingTotals& totals, const Value& value) {
  for (const auto& [number, vm] : totals.vms) {
    const std::string name = NameOf(vm.instance);
    const std::string pid = std::to_string(vm.instance.pid());
    for (const auto& [index, vcpu] : vm.vcpus) {
      const auto number_of_vcpu = value(vcpu);
      if (!number_of_vcpu) continue;
      out.Add({{"vm", name}, {"vcpu", std::to_string(index)}, {"pid", pid}}, *number_of_vcpu);
    }
  }
}

void AddBands(Exposition& out, const RecordingTotals& totals) {
  out.Begin("vcpulse_vcpu_band_seconds_total", Type::kCounter,
            "Time of each vCPU by what it did: halted, spinning, productive or unknown.");
  for (const auto& [number, vm] : totals.vms) {
    const std::string name = NameOf(vm.instance);
    const std::string pid = std::to_string(vm.instance.pid());
    for (const auto& [index, vcpu] : vm.vcpus) {
      const std::string place = std::to_string(index);
      for (size_t band = 0; band < core::kBands; ++band) {
        const auto label = reading::BandName(static_cast<core::Band>(band));
        if (!label) continue;
        out.Add({{"vm", name}, {"vcpu", place}, {"pid", pid}, {"band", *label}},
                Seconds(vcpu.band_ns[band]));
      }
    }
  }
}

void AddVcpus(Exposition& out, const RecordingTotals& totals) {
  AddBands(out, totals);
  out.Begin("vcpulse_vcpu_starved_seconds_total", Type::kCounter,
            "Time in which a vCPU wanted to run and mostly waited for a CPU of the host.");
  AddPerVcpu(out, totals,
             [](const VcpuTotals& vcpu) { return std::optional(Seconds(vcpu.starved_ns)); });
  out.Begin("vcpulse_vcpu_run_delay_seconds_total", Type::kCounter,
            "Time for which a vCPU's thread waited for a CPU of the host, as the scheduler says.");
  AddPerVcpu(out, totals, [](const VcpuTotals& vcpu) -> std::optional<double> {
    if (!vcpu.run_delay_ns) return std::nullopt;
    return Seconds(*vcpu.run_delay_ns);
  });
  out.Begin("vcpulse_vcpu_guest_cycles_total", Type::kCounter,
            "Core cycles that a vCPU spent in guest code; absent where they are not counted.");
  AddPerVcpu(out, totals, [](const VcpuTotals& vcpu) { return vcpu.cycles; });
  out.Begin("vcpulse_vcpu_guest_instructions_total", Type::kCounter,
            "Instructions that a vCPU ran in guest code; absent where they are not counted.");
  AddPerVcpu(out, totals, [](const VcpuTotals& vcpu) { return vcpu.instructions; });
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
  out.Add({}, Seconds(totals.lateness_ns), "_sum");
  out.Add({}, ticks, "_count");
}

}  // namespace

std::string TextOf(const RecordingTotals& totals) {
  Exposition out;
  out.Begin("vcpulse_build_info", Type::kGauge, "Always 1; the labels say what runs here.");
  out.Add({{"version", totals.version}}, uint64_t{1});
  out.Begin("vcpulse_vms", Type::kGauge, "VMs that are recorded now.");
  out.Add({}, static_cast<uint64_t>(std::ranges::count_if(
                  totals.vms, [](const auto& vm) { return !vm.second.ended_mono_ns; })));
  out.Begin("vcpulse_vm_info", Type::kGauge, "Always 1; the labels say which VM it is.");
  for (const auto& [number, vm] : totals.vms) {
    out.Add({{"vm", NameOf(vm.instance)},
             {"pid", std::to_string(vm.instance.pid())},
             {"uuid", vm.instance.uuid()}},
            uint64_t{1});
  }
  AddVcpus(out, totals);
  out.Begin("vcpulse_ticks_total", Type::kCounter, "Ticks that brought a sample.");
  out.Add({}, totals.ticks);
  AddGaps(out, totals);
  AddLateness(out, totals);
  return out.text();
}

}  // namespace vcpulse::metrics

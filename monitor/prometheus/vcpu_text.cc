#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "kvm/base/clock.h"
#include "monitor/prometheus/exposition.h"
#include "monitor/prometheus/vcpu_totals.h"
#include "monitor/reading/labels.h"

namespace vcpulse::prometheus {
namespace {

using metric::Metric;
using Type = Exposition::Type;

struct Place {
  std::string vm;
  std::string vcpu;
  std::string pid;
};

// What a person calls the VM.
std::string NameOf(const v1::VmInstance& instance) {
  if (!instance.name().empty()) return instance.name();
  if (!instance.uuid().empty()) return instance.uuid();
  return std::to_string(instance.pid());
}

// Calls `add` with each vCPU and the labels that tell it from any other.
template <typename Add>
void ForEachVcpu(const RecordingTotals& totals, const Add& add) {
  for (const auto& [number, vm] : totals.vms) {
    const std::string name = NameOf(vm.instance);
    const std::string pid = std::to_string(vm.instance.pid());
    for (const auto& [index, vcpu] : vm.vcpus) {
      add(vcpu, Place{.vm = name, .vcpu = std::to_string(index), .pid = pid});
    }
  }
}

void AddBands(Exposition& out, const RecordingTotals& totals) {
  out.Begin("vcpulse_vcpu_band_seconds_total", Type::kCounter,
            "Time of each vCPU by what it did: halted, spinning, productive or unknown.");
  ForEachVcpu(totals, [&out](const VcpuTotals& vcpu, const Place& place) {
    for (const Metric band :
         {Metric::kHalted, Metric::kSpinning, Metric::kProductive, Metric::kUnknown}) {
      out.Add({{"vm", place.vm},
               {"vcpu", place.vcpu},
               {"pid", place.pid},
               {"band", metric::InfoOf(band).key}},
              ToSeconds(vcpu.totals.Of(band).part));
    }
  });
}

void AddVcpus(Exposition& out, const RecordingTotals& totals) {
  AddBands(out, totals);
  for (const metric::Info& info : metric::Table()) {
    for (size_t i = 0; i < info.counters.size(); ++i) {
      const metric::Counter& counter = info.counters[i];
      if (counter.of == nullptr) continue;
      out.Begin(counter.name, Type::kCounter, counter.help);
      ForEachVcpu(totals, [&](const VcpuTotals& vcpu, const Place& place) {
        const std::optional<double>& sum = vcpu.counters[static_cast<size_t>(info.metric)][i];
        if (!sum) return;
        out.Add({{"vm", place.vm}, {"vcpu", place.vcpu}, {"pid", place.pid}}, *sum / counter.unit);
      });
    }
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

}  // namespace vcpulse::prometheus

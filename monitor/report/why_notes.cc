#include "monitor/report/why_notes.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/report/text_format.h"
#include "monitor/report/verdict_notes.h"

namespace vcpulse::report {
namespace {

using metric::Metric;

// From where each takes about a tenth of the time: a halt and its wake-up some 10 us, an exit to
// the VMM some 20 us, a change of CPU (caches and all) up to a ms.
constexpr std::array kCauses = {
    Cause{.name = "wake-up-storm",
          .metric = Metric::kHaltExits,
          .from = 10'000,
          .meaning = "it is woken and halts again all the time"},
    Cause{.name = "vmm-bound",
          .metric = Metric::kIoExits,
          .from = 5'000,
          .meaning = "it waits for devices that the VMM emulates"},
    Cause{.name = "halt-polling",
          .metric = Metric::kHaltPoll,
          .from = 100,
          .meaning = "busy for the host, idle in the guest"},
    Cause{.name = "moving",
          .metric = Metric::kMigrations,
          .from = 100,
          .meaning = "its thread changes the CPU all the time"},
};

bool IsOfKvm(Metric metric) {
  return metric::InfoOf(metric).of_readings && metric != Metric::kMigrations &&
         metric != Metric::kPreemptions;
}

}  // namespace

std::span<const Cause> Causes() { return kCauses; }

std::vector<const Cause*> CausesOf(const VcpuSummary& vcpu) {
  std::vector<const Cause*> causes;
  for (const Cause& cause : kCauses) {
    if (vcpu.Value(cause.metric).value_or(0) >= cause.from) causes.push_back(&cause);
  }
  return causes;
}

std::string WhyNotes(const VmSummary& vm, std::optional<uint32_t> vcpu) {
  std::string out;
  size_t shown = 0;
  for (const auto& [index, summary] : vm.vcpus) {
    if (vcpu && *vcpu != index) continue;
    std::string text;
    for (const Cause* const cause : CausesOf(summary)) {
      const metric::Info& info = metric::InfoOf(cause->metric);
      absl::StrAppend(&text, text.empty() ? "" : "; ", ToAbsl(cause->name), ": ",
                      MetricText(info, summary.Value(cause->metric)), " ", ToAbsl(info.label), ", ",
                      ToAbsl(cause->meaning));
    }
    if (text.empty()) continue;
    if (shown++ == kListed) return out + "  why: of more vCPUs in --json\n";
    out += Wrapped(absl::StrCat("  why, vCPU ", index, ": "), text);
  }
  return out;
}

std::string MissingStatisticsNote(const VmSummary& vm, std::span<const Metric> columns) {
  if (vm.kvm_missing.empty() || std::ranges::none_of(columns, IsOfKvm)) return "";
  return Wrapped("  KVM's counts are not read: ", Printable(vm.kvm_missing));
}

}  // namespace vcpulse::report

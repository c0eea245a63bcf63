#include "monitor/report/why_notes.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "monitor/report/text_format.h"
#include "monitor/report/vcpu_table.h"
#include "monitor/report/verdict_notes.h"

namespace vcpulse::report {
namespace {

using metric::Metric;

bool IsOfKvm(Metric metric) {
  return metric::InfoOf(metric).of_readings && metric != Metric::kMigrations &&
         metric != Metric::kPreemptions && metric != Metric::kNumaRemote &&
         metric != Metric::kSmtShared;
}

// What explains some of the time of each vCPU that has any: a line each.
std::string NotesOfTime(const VmSummary& vm, std::optional<uint32_t> vcpu,
                        const TimeByCause VcpuSummary::* member, std::string_view name,
                        std::string_view where) {
  std::string out;
  size_t shown = 0;
  for (const auto& [index, summary] : vm.vcpus) {
    if (vcpu && *vcpu != index) continue;
    const TimeByCause& time = summary.*member;
    std::vector<std::string> shares;
    const auto add = [&](double ns, std::string_view cause) {
      if (ns <= 0) return;
      shares.push_back(absl::StrFormat("%.1f %% %s", 100 * ns / time.TotalNs(), ToAbsl(cause)));
    };
    for (const TimeByCause::Part& part : time.parts()) add(part.ns, part.cause);
    add(time.UnexplainedNs(), "unexplained");
    if (shares.empty()) continue;  // nothing was read
    if (shown++ == kListed) {
      return absl::StrCat(out, "  ", ToAbsl(name), ": of more vCPUs in --json\n");
    }
    add(time.UnreadNs(), "not read");
    out += Wrapped(absl::StrCat("  ", ToAbsl(name), ", vCPU ", index, ": "),
                   absl::StrFormat("%.1f s %s, of these %s", ToSeconds(time.TotalNs()),
                                   ToAbsl(where), absl::StrJoin(shares, ", ")));
  }
  return out;
}

}  // namespace

std::vector<const Cause*> CausesOf(const VcpuSummary& vcpu) {
  std::vector<const Cause*> causes;
  for (const Cause& cause : kCauses) {
    const bool suffices = vcpu.totals.Of(cause.metric).whole >= cause.of_at_least;
    if (suffices && vcpu.Value(cause.metric).value_or(0) >= cause.from) causes.push_back(&cause);
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

std::string TimeNotes(const VmSummary& vm, std::optional<uint32_t> vcpu) {
  return NotesOfTime(vm, vcpu, &VcpuSummary::uncounted, "without counters", "on a CPU") +
         NotesOfTime(vm, vcpu, &VcpuSummary::polling, "halted, but busy",
                     "on a CPU outside of the guest");
}

std::string HostCpuNotes(const VmSummary& vm, std::optional<uint32_t> vcpu) {
  constexpr size_t kMostCpus = 8;
  const auto found = vcpu ? vm.vcpus.find(*vcpu) : vm.vcpus.end();
  if (found == vm.vcpus.end() || found->second.host_cpus.AllReadings() == 0) return "";
  const HostCpus& cpus = found->second.host_cpus;
  std::vector<std::pair<uint64_t, uint32_t>> by_readings;
  by_readings.reserve(cpus.readings().size());
  for (const auto& [cpu, readings] : cpus.readings()) by_readings.emplace_back(readings, cpu);
  std::ranges::stable_sort(by_readings, std::greater(), &std::pair<uint64_t, uint32_t>::first);
  std::vector<std::string> shares;
  shares.reserve(by_readings.size());
  for (const auto& [readings, cpu] : by_readings) {
    shares.push_back(absl::StrFormat(
        "CPU %d %.1f %%", cpu,
        100 * static_cast<double>(readings) / static_cast<double>(cpus.AllReadings())));
  }
  const uint64_t moves = cpus.moves().size() - 1 + cpus.moves_omitted();
  return Wrapped(
      absl::StrCat("  host CPUs, vCPU ", *vcpu, ": "),
      absl::StrCat(Listed(shares, kMostCpus), " of ", Plural(cpus.AllReadings(), "reading"),
                   moves > 0 ? absl::StrCat(", of which ", moves,
                                            " found it on another CPU than the one before")
                             : ""));
}

std::string SmtNotes(const Report& report, const VmSummary& vm, std::optional<uint32_t> vcpu) {
  const auto found = vcpu ? vm.vcpus.find(*vcpu) : vm.vcpus.end();
  if (found == vm.vcpus.end() || found->second.smt.readings() == 0) return "";
  const SmtNeighbours& smt = found->second.smt;
  std::vector<std::string> shares;
  for (const SmtNeighbours::Neighbour& one : smt.MostFirst()) {
    const auto& vms = report.summary.vms();
    const auto of = vms.find(one.vcpu.vm);
    shares.push_back(absl::StrFormat(
        "vCPU %d of VM %s %.1f %%", one.vcpu.index,
        of == vms.end() ? absl::StrCat(one.vcpu.vm) : VmLabel(of->first, of->second),
        100 * static_cast<double>(one.readings) / static_cast<double>(smt.readings())));
  }
  return Wrapped(absl::StrCat("  on another thread of its core, vCPU ", *vcpu, ": "),
                 absl::StrCat(shares.empty() ? "no vCPU" : Listed(shares, 8), " of ",
                              Plural(smt.readings(), "reading"), " at which it ran"));
}

std::string HotNotes(const Report& report, const NumberedVm& vm, std::optional<uint32_t> vcpu) {
  constexpr size_t kSpots = 3;
  const hotspots::RecordedHotspots& recorded = report.summary.hotspots();
  std::string out;
  if (const auto refused = recorded.Refused(vm.first)) {
    out += Wrapped("  hot addresses were not sampled: ", Printable(*refused));
  }
  size_t shown = 0;
  for (const auto& [index, summary] : vm.second.vcpus) {
    if (vcpu && *vcpu != index) continue;
    const auto hot = recorded.Of(vm.first, index, report.symbols);
    if (!hot) continue;
    if (shown++ == kListed) return out + "  hot addresses: of more vCPUs by `vcpulse hotspots`\n";
    const std::string shares = SharesOf(*hot, kSpots);
    const std::string why = WhyItSpins(*hot);
    out += Wrapped(
        absl::StrCat("  hot, vCPU ", index, ": "),
        absl::StrCat(shares, shares.empty() ? "" : " of ", Plural(hot->samples, "sample"), " by ",
                     ToAbsl(kvm::ToString(hot->source)), WindowsText(*hot),
                     why.empty() ? "" : absl::StrCat("; ", why),
                     hot->code_refused.empty()
                         ? ""
                         : absl::StrCat("; its code was not read: ", Printable(hot->code_refused)),
                     !report.symbols.Of(hot->vm).symbols.empty() && hotspots::NoSymbolFits(*hot)
                         ? "; no symbol fits: they are another kernel's or another boot's"
                         : "",
                     hot->samples > 0 ? ""
                     : hot->source == kvm::AddressSource::kKvmExit
                         ? " (it was halted, or this KVM does not pass kvm:kvm_exit)"
                     : hot->refused.empty() ? ""
                                            : absl::StrCat(" (", Printable(hot->refused), ")")));
  }
  return out;
}

std::string CompetitorNotes(const Report& report, const NumberedVm& vm,
                            std::optional<uint32_t> vcpu) {
  const reading::RecordedCompetitors& recorded = report.summary.competitors();
  std::string out;
  if (const auto refused = recorded.Refused(vm.first)) {
    out += Wrapped("  competitors were not watched: ", Printable(*refused));
  }
  size_t shown = 0;
  for (const auto& [index, summary] : vm.second.vcpus) {
    if (vcpu && *vcpu != index) continue;
    const auto totals = recorded.Of(vm.first, index);
    if (!totals) continue;
    if (shown++ == kListed) return out + "  competitors: of more vCPUs in --json\n";
    // The scheduler books a wait when it ends: at the edges of a window the two differ.
    const bool saw_little = static_cast<double>(totals->run_delay_ns.value_or(0)) >
                            1.2 * static_cast<double>(totals->waited_ns);
    const std::string windows = Plural(totals->windows, "window");
    out += Wrapped(
        absl::StrCat("  competitors, vCPU ", index, ": "),
        absl::StrCat(totals->waited_ns == 0
                         ? absl::StrCat("no waiting was seen in ", windows)
                         : absl::StrCat(reading::SharesOf(*totals), " (", windows, ", CPU ",
                                        absl::StrJoin(totals->cpus, ", "), ")"),
                     saw_little ? absl::StrFormat("; it waited %.0f ms by the scheduler's count",
                                                  static_cast<double>(*totals->run_delay_ns) * 1e-6)
                                : ""));
  }
  return out;
}

std::string MissingStatisticsNote(const Report& report, const VmSummary& vm,
                                  std::span<const Metric> columns) {
  const bool any = std::ranges::any_of(
      columns, [](Metric metric) { return metric::InfoOf(metric).of_readings; });
  if (any && !vm.kvm_missing) {
    return "  counts of the scheduler and of KVM were not recorded (--no-statistics, or an older "
           "vcpulse)\n";
  }
  std::string notes;
  const auto& session = report.summary.session();
  if (std::ranges::find(columns, Metric::kNumaRemote) != columns.end() && session &&
      session->cpu_nodes().empty()) {
    notes = "  the host has one NUMA node, or its nodes were not recorded\n";
  }
  if (std::ranges::find(columns, Metric::kSmtShared) != columns.end() && session &&
      session->cpu_cores().empty()) {
    notes += "  no core of the host has two threads (SMT), or they were not recorded\n";
  }
  if (std::ranges::find(columns, Metric::kSmtShared) != columns.end() && session &&
      !session->cpu_cores().empty() && std::ranges::all_of(vm.vcpus, [](const auto& one) {
        return one.second.smt.readings() == 0;
      })) {
    notes += "  SMT: no vCPU was seen running by two readings of the scheduler\n";
  }
  const bool wants_kvm = std::ranges::any_of(columns, IsOfKvm);
  if (!wants_kvm || vm.kvm_missing.value_or("").empty()) return notes;
  return notes + Wrapped("  KVM's counts were not read: ", Printable(*vm.kvm_missing));
}

}  // namespace vcpulse::report

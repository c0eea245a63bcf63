// The notes of the text report: everything that must be known beside the numbers.

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"
#include "monitor/report/text_format.h"
#include "monitor/report/text_report.h"
#include "monitor/report/vcpu_table.h"
#include "monitor/report/verdict_notes.h"
#include "monitor/report/why_notes.h"

namespace vcpulse::report {
namespace {

constexpr size_t kLifeCyclesShown = 20;
constexpr size_t kMarkersShown = 20;
constexpr size_t kNotesOfMany = 8;

std::string At(const Report& report, int64_t mono_ns) {
  return absl::StrFormat("%+.1f s", report.SecondsAt(mono_ns));
}

// The reason of an event that was asked for and not counted, with its errno where there is one and
// the reason does not name it already.
std::string AbsentReason(const v1::AbsentEvent& event) {
  std::string reason = Printable(event.reason());
  if (event.error() == 0) return reason.empty() ? "no reason recorded" : reason;
  const std::string name =
      reading::ErrnoName(event.error()).value_or(absl::StrCat("errno ", event.error()));
  if (reason.find(name) != std::string::npos) return reason;
  return reason.empty() ? reading::ErrnoText(event.error()) : absl::StrCat(name, ": ", reason);
}

// Events that the PMU refused, by reason.
std::string AbsentEvents(const Report& report, const VmSummary& vm) {
  const auto& session = report.summary.session();
  const std::string degraded = session ? Printable(session->degraded_reason()) : "";
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& [number, epoch] : vm.epochs) {
    for (const v1::AbsentEvent& event : epoch.set.absent_events()) {
      std::vector<std::string>& events = by_reason[AbsentReason(event)];
      const std::string name = Printable(event.event());
      if (std::find(events.begin(), events.end(), name) == events.end()) events.push_back(name);
    }
  }
  std::string out;
  for (const auto& [reason, events] : by_reason) {
    const bool is_known = !degraded.empty() && reason.ends_with(degraded);
    out += Wrapped("  not counted: ", absl::StrCat(Listed(events, kListed), " (",
                                                   is_known ? "see DEGRADED above" : reason, ")"));
  }
  return out;
}

std::string UnopenedVcpus(const VmSummary& vm) {
  struct Unopened {
    const v1::UnopenedVcpu* latest = nullptr;
    size_t epochs = 0;
  };
  std::map<uint32_t, Unopened> by_index;
  for (const auto& [number, epoch] : vm.epochs) {
    for (const v1::UnopenedVcpu& vcpu : epoch.set.unopened_vcpus()) {
      by_index[vcpu.index()].latest = &vcpu;
      ++by_index[vcpu.index()].epochs;
    }
  }
  std::string out;
  for (const auto& [index, vcpu] : by_index) {
    std::string why = Printable(vcpu.latest->reason());
    if (vcpu.latest->error() != 0 || why.empty()) {
      why = absl::StrCat(reading::ErrnoText(vcpu.latest->error()), why.empty() ? "" : "; ", why);
    }
    const size_t epochs = vm.epochs.size();
    out += Wrapped(absl::StrCat("  vCPU ", index, " could not be opened",
                                vcpu.epochs == epochs
                                    ? ""
                                    : absl::StrCat(" in ", vcpu.epochs, " of ", epochs, " epochs"),
                                ": "),
                   why);
  }
  return out;
}

// vCPUs in whose row something is "-" or marked, and why.
std::string CountNotes(const VmSummary& vm) {
  std::vector<std::string> unmeasured;
  std::vector<std::string> never_ran;
  std::vector<std::string> estimated;
  std::vector<std::string> partial;
  for (const auto& [index, vcpu] : vm.vcpus) {
    const double measured_ns = vcpu.totals.MeasuredNs();
    if (measured_ns == 0) {
      unmeasured.push_back(absl::StrCat(index));
      continue;
    }
    const metric::Ratio& running = vcpu.totals.Of(metric::Metric::kRunning);
    const bool never = running.whole > 0 && running.part == 0;
    if (never) never_ran.push_back(absl::StrCat(index));
    if (!never && running.part < running.whole) {
      // Rounding must not make 99.99 % a whole.
      estimated.push_back(absl::StrFormat("%d: %.3g%%", index, 100 * *running.Value()));
    }
    for (const char* event : {"cycles", "instructions"}) {
      const EventTotal* total = vcpu.FindEvent(event);
      if (total == nullptr || !total->Raw() || !total->IsPartOf(measured_ns)) continue;
      partial.push_back(absl::StrFormat("%d: %s in %s of %s", index, event,
                                        DurationText(static_cast<double>(total->CountedNs())),
                                        DurationText(measured_ns)));
    }
  }
  std::string out;
  if (!unmeasured.empty()) {
    out += Wrapped("  - ", absl::StrCat("fewer than two samples in a row, so no interval was "
                                        "measured: vCPU ",
                                        Listed(unmeasured, kListed)));
  }
  if (!never_ran.empty()) {
    out += Wrapped("  - ", absl::StrCat("the counter group was never on the PMU while the thread "
                                        "ran: vCPU ",
                                        Listed(never_ran, kListed)));
  }
  if (!estimated.empty()) {
    out += Wrapped("  ~ ", absl::StrCat("an estimate, scaled up: the counter group was on the PMU "
                                        "for part of the time only: vCPU ",
                                        Listed(estimated, kListed)));
  }
  if (!partial.empty()) {
    out += Wrapped("  + ", absl::StrCat("at least: counted in some epochs only: vCPU ",
                                        Listed(partial, kListed)));
  }
  return out;
}

// Events by name, groups that took turns, host-side events: the table has no column for them.
bool HasMoreEvents(const VmSummary& vm) {
  return std::ranges::any_of(vm.epochs, [](const auto& entry) {
    const v1::VcpuSet& set = entry.second.set;
    return set.event_set() == "custom" || set.further_groups_size() > 0 ||
           set.host_side_events_size() > 0;
  });
}

bool IsHostSide(const VmSummary& vm, const std::string& event) {
  return std::ranges::any_of(vm.epochs, [&event](const auto& entry) {
    const auto& events = entry.second.set.host_side_events();
    return std::find(events.begin(), events.end(), event) != events.end();
  });
}

std::string EventText(const VmSummary& vm, const VcpuSummary& vcpu, const EventTotal& total) {
  std::string text = Printable(total.event);
  if (!total.Raw()) return text + " - (its group never ran)";
  absl::StrAppend(&text, total.IsEstimate() ? " ~" : " ", Units(*total.Scaled()));
  if (total.IsPartOf(vcpu.totals.MeasuredNs())) text += '+';
  if (IsHostSide(vm, total.event)) text += " (host-side)";
  if (total.IsEstimate()) {
    absl::StrAppend(&text, absl::StrFormat(" (estimate, counted %.3g%% of the time)",
                                           100 * total.RunningShare().value_or(0)));
  }
  return text;
}

std::string EventNotes(const VmSummary& vm) {
  if (!HasMoreEvents(vm)) return "";
  std::string out;
  size_t shown = 0;
  for (const auto& [index, vcpu] : vm.vcpus) {
    if (shown++ == kListed) break;
    std::string events;
    for (const EventTotal& total : vcpu.events) {
      absl::StrAppend(&events, events.empty() ? "" : ", ", EventText(vm, vcpu, total));
    }
    out += Wrapped(absl::StrCat("  events, vCPU ", index, ": "), events);
  }
  if (vm.vcpus.size() > kListed) {
    absl::StrAppend(&out, "  events: of ", vm.vcpus.size() - kListed, " more vCPUs in --json\n");
  }
  return out;
}

std::string GapNotes(const Report& report, const GapTotals& gaps, const char* first) {
  std::string out;
  for (const auto& [key, total] : gaps) {
    const auto& [reason, vcpu, error] = key;
    std::string text = absl::StrCat(Plural(total.ticks, "tick"), " lost, ",
                                    std::string(reading::GapReasonName(reason)));
    if (vcpu) absl::StrAppend(&text, ", vCPU ", *vcpu);
    if (error != 0) absl::StrAppend(&text, ", ", reading::ErrnoText(error));
    absl::StrAppend(&text, " (at ", At(report, total.first_mono_ns));
    if (total.records > 1) absl::StrAppend(&text, " to ", At(report, total.last_mono_ns));
    absl::StrAppend(&text, ")");
    out += Wrapped(first, text);
  }
  return out;
}

// What discovery and the ladder noticed, each once.
std::string SetNotes(const VmSummary& vm) {
  std::vector<std::string> notes;
  for (const auto& [number, epoch] : vm.epochs) {
    for (const std::string& note : epoch.set.notes()) {
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    }
  }
  std::string out;
  for (size_t i = 0; i < std::min(notes.size(), kListed); ++i) {
    out += Wrapped("  note: ", Printable(notes[i]));
  }
  return out;
}

// One change: "vm-found, VM 1 "web": found".
std::string ChangeText(const v1::LifeCycle& change) {
  std::string text(reading::LifeCycleName(change.kind()));
  if (const auto reason = reading::SkipReasonName(change)) {
    absl::StrAppend(&text, " (", std::string(*reason), ")");
  }
  if (change.vm() != 0) absl::StrAppend(&text, ", VM ", change.vm());
  if (!change.instance().name().empty()) {
    absl::StrAppend(&text, " \"", Printable(change.instance().name()), "\"");
  }
  if (!change.detail().empty()) absl::StrAppend(&text, ": ", Printable(change.detail()));
  return text;
}

// Where many VMs did the same in a row, one line says it of all of them.
std::string LifeCycle(const Report& report) {
  constexpr size_t kMany = 3;
  const std::deque<v1::LifeCycle>& changes = report.summary.life_cycle();
  std::string out;
  size_t shown = 0;
  size_t lines = 0;
  while (shown < changes.size() && lines++ < kLifeCyclesShown) {
    const v1::LifeCycle& first = changes[shown];
    size_t end = shown;
    std::vector<std::string> vms;
    while (end < changes.size() && changes[end].kind() == first.kind() && changes[end].vm() != 0 &&
           changes[end].detail() == first.detail()) {
      const std::string vm = absl::StrCat(changes[end].vm());
      if (std::ranges::find(vms, vm) != vms.end()) break;
      vms.push_back(vm);
      ++end;
    }
    if (vms.size() < kMany) {
      out += Wrapped(absl::StrCat("life cycle: ", At(report, first.mono_ns()), " "),
                     ChangeText(first));
      ++shown;
      continue;
    }
    std::string text = absl::StrCat(std::string(reading::LifeCycleName(first.kind())), ", VMs ",
                                    Listed(vms, kListed));
    if (!first.detail().empty()) absl::StrAppend(&text, ": ", Printable(first.detail()));
    out += Wrapped(absl::StrCat("life cycle: ", At(report, first.mono_ns()), " to ",
                                At(report, changes[end - 1].mono_ns()), " "),
                   text);
    shown = end;
  }
  const size_t left = changes.size() - shown + report.summary.life_cycle_omitted();
  if (left > 0) absl::StrAppend(&out, "life cycle: ", Plural(left, "more change"), " (--json)\n");
  return out;
}

std::string Markers(const Report& report) {
  const Summary& summary = report.summary;
  std::string out;
  size_t shown = 0;
  for (const v1::Marker& marker : summary.markers()) {
    if (shown++ == kMarkersShown) break;
    out += Wrapped(absl::StrCat("marker: ", At(report, marker.mono_ns()), " "),
                   Printable(marker.name()));
  }
  const size_t total = summary.markers().size() + summary.markers_omitted();
  if (total > kMarkersShown) {
    absl::StrAppend(&out, "marker: ", total - kMarkersShown, " more (--json)\n");
  }
  return out;
}

std::string Quantiles(const Distribution& values, bool with_max) {
  if (values.count() == 0) return "-";
  std::string text = absl::StrCat("p50 ", DurationText(*values.Quantile(0.5)), ", p99 ",
                                  DurationText(*values.Quantile(0.99)));
  if (with_max) absl::StrAppend(&text, ", max ", DurationText(*values.Max()));
  return text;
}

// By BPF, read(2) or both.
std::string ReadingCost(const OwnCost& cost) {
  std::string text;
  if (cost.kept > 0) {
    absl::StrAppend(&text, "; ", cost.kept, " values read by BPF");
    if (cost.age_ns.count() > 0) {
      absl::StrAppend(&text, ", those of running vCPUs ", Quantiles(cost.age_ns, true), " old");
    }
  }
  if (cost.read_ns.count() > 0) {
    absl::StrAppend(&text, "; ",
                    cost.kept > 0 ? absl::StrCat(cost.read_ns.count(), " by read(2), ") : "",
                    "reading one vCPU took ", Quantiles(cost.read_ns, false));
  }
  return text;
}

// How counters were read, where that was not by BPF.
std::string WhyNotByBpf(const Report& report) {
  const std::optional<v1::Session>& session = report.summary.session();
  if (!session || session->reader() != "read") return "";
  const std::string why =
      session->no_bpf_reason().empty() ? "" : absl::StrCat("; no BPF: ", session->no_bpf_reason());
  return Wrapped("reader: ", absl::StrCat("read(2), which interrupts each running vCPU", why));
}

// 0.015 %, 1.5 %, 150 %.
std::string PercentOfOneCpu(double share) {
  return share < 1 ? absl::StrFormat("%.2g%%", 100 * share)
                   : absl::StrFormat("%.0f%%", 100 * share);
}

std::string Cost(const Report& report) {
  if (!report.HasOwnCost()) return "";
  const OwnCost& cost = report.summary.own_cost();
  const std::optional<v1::Summary>& end = report.summary.end();
  std::string out;
  if (cost.ticks == 0) {
    out = "own cost: no tick with a sample was recorded\n";
  } else {
    out = Wrapped(
        "own cost: ",
        absl::StrCat(Plural(cost.ticks, "tick"), ", ", cost.ticks_missed, " missed; late by ",
                     Quantiles(cost.lateness_ns, true), ReadingCost(cost),
                     cost.kept > 0 ? "; values of one VM spanned " : "; reads of one VM spanned ",
                     Quantiles(cost.skew_ns, true)));
  }
  if (end) {
    std::string text = DurationText(static_cast<double>(end->cpu_ns()));
    if (report.CpuShare()) {
      absl::StrAppend(&text,
                      absl::StrCat(", ", PercentOfOneCpu(*report.CpuShare()), " of one CPU"));
    }
    out += Wrapped("own cost: ", absl::StrCat("processor time ", text));
  }
  return out + WhyNotByBpf(report);
}

// Why a count is absent or an estimate.
std::string NotesOfCounts(const Report& report, const VmSummary& vm, std::optional<uint32_t> vcpu) {
  if (vcpu && (vm.vcpus.size() > 1 || !vm.vcpus.contains(*vcpu))) {
    VmSummary only = vm;
    std::erase_if(only.vcpus, [&](const auto& entry) { return entry.first != *vcpu; });
    return NotesOfCounts(report, only, std::nullopt);
  }
  return absl::StrCat(EventNotes(vm), AbsentEvents(report, vm), UnopenedVcpus(vm), CountNotes(vm));
}

}  // namespace

std::string RenderVmNotes(const Report& report, const NumberedVm& vm,
                          std::optional<uint32_t> vcpu) {
  return absl::StrCat(NotesOfCounts(report, vm.second, vcpu), RenderVerdictNotes({&vm}, vcpu, "  "),
                      WhyNotes(vm.second, vcpu), HostCpuNotes(vm.second, vcpu),
                      SmtNotes(report, vm.second, vcpu), TimeNotes(vm.second, vcpu),
                      HotNotes(report, vm, vcpu), CompetitorNotes(report, vm, vcpu),
                      GapNotes(report, vm.second.gaps, "  gap: "), SetNotes(vm.second));
}

std::string RenderNotes(const Report& report, const Vms& vms, std::optional<uint32_t> vcpu) {
  // Of one VM each: whole notes, a note being a line and the indented ones that belong to it.
  std::vector<std::pair<std::string, std::vector<std::string>>> notes;
  for (const auto* const vm : vms) {
    const std::string number = absl::StrCat(vm->first);
    const std::string text =
        absl::StrCat(NotesOfCounts(report, vm->second, vcpu), WhyNotes(vm->second, vcpu),
                     HostCpuNotes(vm->second, vcpu), SmtNotes(report, vm->second, vcpu),
                     TimeNotes(vm->second, vcpu), HotNotes(report, *vm, vcpu),
                     CompetitorNotes(report, *vm, vcpu),
                     GapNotes(report, vm->second.gaps, "  gap: "), SetNotes(vm->second));
    for (size_t begin = 0; begin < text.size();) {
      size_t end = text.find('\n', begin) + 1;
      while (text.compare(end, 3, "   ") == 0) end = text.find('\n', end) + 1;
      const std::string note = text.substr(begin, end - begin);
      begin = end;
      const auto known =
          std::ranges::find(notes, note, [](const auto& entry) { return entry.first; });
      if (known == notes.end()) {
        notes.emplace_back(note, std::vector{number});
      } else if (known->second.back() != number) {
        known->second.push_back(number);
      }
    }
  }
  std::ranges::stable_sort(notes, std::greater{},
                           [](const auto& entry) { return entry.second.size(); });
  std::string out;
  size_t shown = 0;
  const std::vector<std::string>* last = nullptr;
  for (const auto& [note, numbers] : notes) {
    if (shown++ == kNotesOfMany) break;
    if (last != &numbers && (last == nullptr || *last != numbers)) {
      absl::StrAppend(&out, numbers.size() == vms.size()
                                ? absl::StrCat("all ", vms.size(), " VMs:\n")
                                : absl::StrCat("VM ", Listed(numbers, kListed), ":\n"));
    }
    last = &numbers;
    out += note;
  }
  if (notes.size() > kNotesOfMany) {
    absl::StrAppend(&out, Plural(notes.size() - kNotesOfMany, "more note"),
                    " (--vm VM shows those of one)\n");
  }
  return absl::StrCat(RenderVerdictNotes(vms, vcpu, ""), out);
}

std::string RenderClosing(const Report& report) {
  std::string out = GapNotes(report, report.summary.gaps(), "gap of all VMs: ");
  absl::StrAppend(&out, Markers(report), LifeCycle(report), Cost(report));
  const std::string loss = DescribeLoss(report);
  if (!loss.empty()) out += Wrapped("LOSS: ", loss);
  return out;
}

}  // namespace vcpulse::report

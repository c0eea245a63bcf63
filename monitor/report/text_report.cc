#include "monitor/report/text_report.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"
#include "monitor/replay/recorded_settings.h"
#include "monitor/report/strip.h"
#include "monitor/report/text_format.h"

namespace vcpulse::report {
namespace {

using metric::Metric;

// A band is coloured where the vCPU spent at least half of its time in it.
constexpr double kColouredFrom = 0.5;
// The share of waiting from which a thread counts as starved within a tick, here for a whole run.
constexpr double kStarvedFrom = 0.1;

std::string FormatInterval(uint64_t ns) {
  return absl::FormatDuration(absl::Nanoseconds(static_cast<int64_t>(ns)));
}

std::string HostLine(const Report& report, const v1::Session& session) {
  if (report.IsImported()) {
    return Wrapped(
        "", absl::StrCat("counters from elsewhere; vcpulse ", Printable(session.tool_version())));
  }
  const std::string host = Printable(session.host_name());
  std::string line = host.empty() ? "" : absl::StrCat(host, ": ");
  absl::StrAppend(&line, "Linux ", Printable(session.kernel_release()), " ",
                  Printable(session.machine()));
  if (!session.cpu_model().empty()) {
    absl::StrAppend(&line, ", ", Printable(session.cpu_model()));
  }
  if (session.online_cpus() > 0) {
    absl::StrAppend(&line, ", ", Plural(session.online_cpus(), "CPU"));
  }
  absl::StrAppend(&line, "; vcpulse ", Printable(session.tool_version()));
  return Wrapped("", line);
}

std::string TimeLine(const Report& report, const v1::Session& session) {
  std::string line;
  if (const auto start = report.StartRealtimeNs()) {
    absl::StrAppend(&line, absl::FormatTime("recorded %Y-%m-%d %H:%M:%S UTC, ",
                                            absl::FromUnixNanos(*start), absl::UTCTimeZone()));
  }
  absl::StrAppend(&line, report.Start() ? DurationText(static_cast<double>(report.DurationNs()))
                                        : "nothing happened");
  if (report.phase) {
    absl::StrAppend(&line, " of it (phase ", Printable(report.phase->name), ", ",
                    Plural(report.phase->spans, "span"), ")");
  } else if (report.IsPart()) {
    absl::StrAppend(&line, " of it (after ",
                    DurationText(static_cast<double>(report.from_ns.value_or(0))));
    if (report.to_ns) {
      absl::StrAppend(&line, ", up to ", DurationText(static_cast<double>(*report.to_ns)));
    }
    absl::StrAppend(&line, ")");
  }
  absl::StrAppend(&line, ", a tick every ", FormatInterval(session.interval_ns()));
  if (session.verdict_window_ns() > session.interval_ns()) {
    absl::StrAppend(&line, ", verdicts over ", FormatInterval(session.verdict_window_ns()));
  }
  if (session.scheduling() == v1::SCHEDULING_FIFO) {
    absl::StrAppend(&line, ", sampling under SCHED_FIFO");
  }
  return Wrapped("", line);
}

std::string GigaHertz(double hz) { return absl::StrFormat("%.3f GHz", hz / 1e9); }

// What residency was where an epoch had no ref-cycles; empty where all had them.
std::string WithoutRefCycles(const Report& report, const v1::Session& session) {
  if (!report.summary.residency_without_ref_cycles()) return "";
  return absl::StrCat("; where ref-cycles were not counted, guest cycles over the highest ",
                      session.max_hz() > 0 ? "core frequency: a lower bound"
                                           : "rate seen: too high until a busy tick came");
}

std::string ResidencyText(const Report& report, const v1::Session& session) {
  const std::optional<double> max_hz = report.summary.residency_bases().front().max_hz;
  switch (session.residency_method()) {
    case v1::RESIDENCY_METHOD_REF_CYCLES:
      return absl::StrCat("guest ref-cycles over the TSC frequency (", GigaHertz(session.tsc_hz()),
                          "): exact at any core frequency", WithoutRefCycles(report, session));
    case v1::RESIDENCY_METHOD_MAX_FREQUENCY:
      return absl::StrCat("guest cycles over the highest core frequency known or seen (",
                          max_hz ? GigaHertz(*max_hz) : "none yet", ")");
    case v1::RESIDENCY_METHOD_TIME_ENABLED:
      return "time on a CPU, guest or host mode (no counter)";
    case v1::RESIDENCY_METHOD_HIGHEST_RATE:
      return "guest cycles over the highest rate seen";
    default:
      return "the recording does not say how";
  }
}

std::string ResidencyLine(const Report& report, const v1::Session& session) {
  const std::string blind_spot = session.residency_blind_spot().empty()
                                     ? std::string(replay::BlindSpotOf(session.residency_method()))
                                     : session.residency_blind_spot();
  return Wrapped("residency: ",
                 absl::StrCat(ResidencyText(report, session), blind_spot.empty() ? "" : "; ",
                              Printable(blind_spot)));
}

// The classifiers that judged the epochs; where no epoch is known, what was asked for.
std::set<std::string> ClassifiersOf(const Report& report, const v1::Session& session) {
  std::set<std::string> names;
  for (const auto& [number, vm] : report.summary.vms()) {
    for (const auto& [epoch_number, epoch] : vm.epochs) {
      names.emplace(reading::ClassifierOf(epoch.set));
    }
  }
  if (names.empty()) names.insert(session.classifier().name());
  return names;
}

std::string ClassifierLine(const Report& report, const v1::Session& session) {
  const v1::ClassifierSettings& classifier = session.classifier();
  const std::set<std::string> names = ClassifiersOf(report, session);
  std::string line = Printable(absl::StrJoin(names, ", "));
  if (names.size() > 1) absl::StrAppend(&line, " (by what each epoch counts)");
  if (!classifier.profile().empty()) {
    absl::StrAppend(&line, ", profile ", Printable(classifier.profile()));
  }
  absl::StrAppend(&line, absl::StrFormat(": HALTED below residency %g (left above %g)",
                                         classifier.halted_enter(), classifier.halted_leave()));
  if (names.contains("ipc-bands")) {
    absl::StrAppend(
        &line, absl::StrFormat("; %sSPINNING below IPC %g, PRODUCTIVE from IPC %g",
                               names.size() > 1 ? "ipc-bands: " : "", classifier.spinning_below(),
                               classifier.productive_from()));
  }
  if (names.contains("evidence")) {
    absl::StrAppend(&line,
                    names.size() > 1
                        ? "; evidence: rules over several features, see --explain and docs/bands.md"
                        : "; then rules over several features, see --explain and docs/bands.md");
  }
  return Wrapped("bands: ", line);
}

std::string Head(const Report& report) {
  if (!report.summary.session()) return "The session record was lost: host and method unknown.\n";
  const v1::Session& session = *report.summary.session();
  std::string out = HostLine(report, session);
  out += TimeLine(report, session);
  out += ResidencyLine(report, session);
  if (session.core_pmus_size() > 0) {
    out += Wrapped("hybrid: ",
                   absl::StrCat("core PMUs ", Printable(absl::StrJoin(session.core_pmus(), ", ")),
                                "; counts add up, residency holds each PMU's cycles "
                                "against its own frequency"));
  }
  out += ClassifierLine(report, session);
  if (!session.derived_from().empty()) {
    out += Wrapped("judged anew: ", "by `vcpulse classify`, from the counts of another timeline");
  }
  if (!session.degraded_reason().empty()) {
    out += Wrapped("DEGRADED: ", absl::StrCat("no hardware counter was read: ",
                                              Printable(session.degraded_reason())));
  }
  return out;
}

std::string VmLine(const Report& report, uint32_t number, const VmSummary& vm) {
  const v1::VmInstance& instance = vm.instance;
  std::string line = absl::StrCat("VM ", number);
  if (!instance.name().empty()) absl::StrAppend(&line, " \"", Printable(instance.name()), "\"");
  if (instance.pid() != 0) absl::StrAppend(&line, ", pid ", instance.pid());
  if (!instance.uuid().empty()) absl::StrAppend(&line, ", uuid ", Printable(instance.uuid()));
  uint64_t gaps = 0;
  for (const auto& [key, total] : vm.gaps) gaps += total.ticks;
  absl::StrAppend(&line, ": ", Plural(vm.samples, "sample"), ", ", Plural(gaps, "gap"));
  uint64_t of_all = 0;  // listed below the tables
  for (const auto& [key, total] : report.summary.gaps()) of_all += total.ticks;
  if (of_all > 0) absl::StrAppend(&line, " of its own, ", of_all, " of all VMs");
  if (vm.epochs.size() + vm.epochs_omitted > 1) {
    absl::StrAppend(&line, ", ", Plural(vm.epochs.size() + vm.epochs_omitted, "epoch"));
  }
  if (!vm.epochs.empty()) {
    const v1::VcpuSet& set = vm.epochs.rbegin()->second.set;
    absl::StrAppend(&line, ", event set ", Printable(set.event_set()));
  }
  return Wrapped("", line);
}

// Those that everybody wants to see.
constexpr std::array kShownMetrics = {Metric::kHalted,    Metric::kSpinning, Metric::kProductive,
                                      Metric::kUnknown,   Metric::kStarved,  Metric::kIpc,
                                      Metric::kResidency, Metric::kRunDelay};
constexpr std::array<const char*, 2> kCounts = {"cycles", "instructions"};

Colour ColourOf(Metric metric, double value) {
  if (metric == Metric::kStarved) return value >= kStarvedFrom ? Colour::kRed : Colour::kNone;
  if (value < kColouredFrom) return Colour::kNone;
  if (metric == Metric::kHalted) return Colour::kDim;
  if (metric == Metric::kSpinning) return Colour::kYellow;
  return metric == Metric::kProductive ? Colour::kGreen : Colour::kNone;
}

Table::Cell MetricCell(const VcpuSummary& vcpu, Metric metric) {
  const std::optional<double> value = vcpu.Value(metric);
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

// Whether an IPC alone called some of its time SPINNING: a hint, to be marked as one.
bool HasIpcSpinning(const VmSummary& vm) {
  return std::ranges::any_of(vm.vcpus, [](const auto& entry) {
    return entry.second.rule_ns[static_cast<size_t>(core::Rule::kIpcLow)] > 0;
  });
}

std::vector<std::string> Header(const VmSummary& vm, std::span<const Metric> further) {
  std::vector<std::string> header = {"vCPU", "TID"};
  const bool is_hint = HasIpcSpinning(vm);
  const auto add = [&header, is_hint](Metric metric) {
    header.emplace_back(metric::InfoOf(metric).label);
    if (metric == Metric::kSpinning && is_hint) header.back() += '?';
  };
  std::ranges::for_each(kShownMetrics, add);
  header.insert(header.end(), {"cycles", "instr"});
  std::ranges::for_each(further, add);
  return header;
}

std::vector<Table::Cell> Row(const VcpuSummary& vcpu, std::span<const Metric> further) {
  std::vector<Table::Cell> row = {{absl::StrCat(vcpu.index)},
                                  {TidText(vcpu.tids.empty() ? 0 : vcpu.tids.back())}};
  for (const Metric metric : kShownMetrics) row.push_back(MetricCell(vcpu, metric));
  for (const char* const event : kCounts) row.push_back({CountText(vcpu, event)});
  for (const Metric metric : further) row.push_back(MetricCell(vcpu, metric));
  return row;
}

// Rows of the vCPUs, and of those that never could be opened: they must not vanish from sight.
std::string VmTable(const VmSummary& vm, const TextOptions& options) {
  std::vector<Metric> further = options.columns;
  std::erase_if(further, [](Metric metric) {
    return std::ranges::find(kShownMetrics, metric) != kShownMetrics.end();
  });
  const std::vector<std::string> header = Header(vm, further);
  Table table(header);
  std::map<uint32_t, std::vector<Table::Cell>> rows;
  for (const auto& [number, epoch] : vm.epochs) {
    for (const v1::UnopenedVcpu& vcpu : epoch.set.unopened_vcpus()) {
      std::vector<Table::Cell> row(header.size(), Table::Cell{"-"});
      row[0].text = absl::StrCat(vcpu.index());
      row[1].text = TidText(vcpu.tid());
      rows[vcpu.index()] = std::move(row);
    }
  }
  for (const auto& [index, vcpu] : vm.vcpus) rows[index] = Row(vcpu, further);
  if (rows.empty()) return "no vCPU was recorded\n";
  for (auto& [index, row] : rows) table.AddRow(std::move(row));
  return table.Render(options.colour);
}

}  // namespace

std::string RenderText(const Report& report, const TextOptions& options) {
  const Summary& summary = report.summary;
  const StripOptions strips{.width = options.width, .colour = options.colour};
  std::string out = Head(report);
  if (summary.vms().empty()) out += "\nNo VM was recorded.\n";
  for (const auto& [number, vm] : summary.vms()) {
    absl::StrAppend(&out, "\n", VmLine(report, number, vm), VmTable(vm, options),
                    options.strips ? RenderStrips(report, *options.strips, number, strips) : "",
                    RenderVmNotes(report, vm));
  }
  if (options.strips) absl::StrAppend(&out, "\n", StripLegend(*options.strips, strips));
  const bool has_hints = std::ranges::any_of(
      summary.vms(), [](const auto& entry) { return HasIpcSpinning(entry.second); });
  if (summary.session() && has_hints) {
    absl::StrAppend(
        &out, "\n",
        Wrapped("", absl::StrFormat(
                        "SPINNING? is by ipc-bands: the IPC was below %g, which is a hint and no "
                        "proof of a spin loop. Slow work, such as divisions or cache misses, looks "
                        "the same.",
                        summary.session()->classifier().spinning_below())));
  }
  absl::StrAppend(&out, "\n", RenderClosing(report));
  return out;
}

}  // namespace vcpulse::report

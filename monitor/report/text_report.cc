#include "monitor/report/text_report.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"
#include "monitor/replay/recorded_settings.h"
#include "monitor/report/headline.h"
#include "monitor/report/strip.h"
#include "monitor/report/text_format.h"
#include "monitor/report/vcpu_table.h"
#include "monitor/report/why_notes.h"

namespace vcpulse::report {
namespace {

// From so many VMs on, a table and strips of each would fill screens.
constexpr size_t kManyVms = 3;
constexpr size_t kVcpusOfMany = 16;

std::string FormatInterval(uint64_t ns) {
  return absl::FormatDuration(absl::Nanoseconds(static_cast<int64_t>(ns)));
}

// Its agent id, where that is another than its name, and its labels.
std::string IdentityText(const v1::Session& session) {
  std::vector<std::string> parts;
  if (!session.agent_id().empty() && session.agent_id() != session.host_name()) {
    parts.push_back(absl::StrCat("agent ", Printable(session.agent_id())));
  }
  for (const v1::Label& label : session.labels()) {
    parts.push_back(absl::StrCat(Printable(label.key()), "=", Printable(label.value())));
  }
  return absl::StrJoin(parts, ", ");
}

std::string HostLine(const Report& report, const v1::Session& session) {
  if (report.IsImported()) {
    return Wrapped(
        "", absl::StrCat("counters from elsewhere; vcpulse ", Printable(session.tool_version())));
  }
  const std::string host = Printable(session.host_name());
  std::string line = host.empty() ? "" : absl::StrCat(host, ": ");
  absl::StrAppend(&line, "Linux");
  for (const std::string& what : {session.kernel_release(), session.machine()}) {
    if (!what.empty()) absl::StrAppend(&line, " ", Printable(what));
  }
  if (!session.cpu_model().empty()) {
    absl::StrAppend(&line, ", ", Printable(session.cpu_model()));
  }
  if (session.online_cpus() > 0) {
    absl::StrAppend(&line, ", ", Plural(session.online_cpus(), "CPU"));
  }
  absl::StrAppend(&line, "; vcpulse ", Printable(session.tool_version()));
  const std::string identity = IdentityText(session);
  if (!identity.empty()) absl::StrAppend(&line, "; ", identity);
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

std::string DegradedLine(const Report& report) {
  std::string text = DegradedText(report);
  if (text.empty()) return "";
  if (std::ranges::any_of(report.summary.vms(),
                          [](const auto& vm) { return IsDegraded(vm.second); })) {
    text += ". RAN is the share of time on a CPU; whether a vCPU worked or spun there is unknown.";
  }
  return Wrapped("DEGRADED: ", text);
}

// Of those in this state: "loop: ANSWER; alu: ANSWER and 3 more".
std::string ClaimsOf(const v1::CounterProof& proof, std::string_view state) {
  std::vector<std::string> claims;
  for (const v1::CounterProof::Claim& claim : proof.claims()) {
    if (claim.state() != state) continue;
    claims.push_back(absl::StrCat(Printable(claim.id()), ": ", Printable(claim.answer())));
  }
  const size_t more = claims.size() > 2 ? claims.size() - 2 : 0;
  claims.resize(claims.size() - more);
  return absl::StrCat(absl::StrJoin(claims, "; "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

std::string Head(const Report& report, const TextOptions& options) {
  const std::string first = DegradedLine(report);
  if (!report.summary.session()) {
    return absl::StrCat(first, "The session record was lost: host and method unknown.\n",
                        RenderHeadline(report, options));
  }
  const v1::Session& session = *report.summary.session();
  std::string out = first;
  const bool proven = session.counter_proof().outcome() == v1::CounterProof::OUTCOME_PROVEN;
  if (session.has_counter_proof() && !proven) {
    out += Wrapped("", ProofText(session.counter_proof()));
  }
  out += HostLine(report, session);
  out += TimeLine(report, session);
  out += RenderHeadline(report, options);
  if (options.brief) return out;
  out += ResidencyLine(report, session);
  if (session.core_pmus_size() > 0) {
    out += Wrapped("hybrid: ",
                   absl::StrCat("core PMUs ", Printable(absl::StrJoin(session.core_pmus(), ", ")),
                                "; counts add up, residency holds each PMU's cycles "
                                "against its own frequency"));
  }
  out += ClassifierLine(report, session);
  if (proven) out += Wrapped("", ProofText(session.counter_proof()));
  if (!session.derived_from().empty()) {
    out += Wrapped("judged anew: ", "by `vcpulse classify`, from the counts of another timeline");
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

// Those that are shown of all rows, and how many are not.
std::string RenderRows(const Report& report, std::vector<VcpuRow> rows, size_t top, bool with_vm,
                       const TextOptions& options) {
  const size_t all = rows.size();
  if (top > 0 && all > top) rows.resize(top);
  std::string out = RenderVcpuTable(report.summary, rows, with_vm, options);
  if (rows.size() < all) {
    absl::StrAppend(&out, Plural(all - rows.size(), "more vCPU"), " (--top 0 shows all)\n");
  }
  return out;
}

std::string RenderEach(const Report& report, const Vms& vms, const TextOptions& options) {
  const StripOptions strips{.width = options.width, .colour = options.colour, .vcpu = options.vcpu};
  std::string out;
  for (const auto* const vm : vms) {
    const auto& [number, summary] = *vm;
    absl::StrAppend(
        &out, "\n", VmLine(report, number, summary),
        RenderRows(report, RowsOf({vm}, options), options.top.value_or(0), false, options),
        options.strips ? RenderStrips(report, *options.strips, number, strips) : "",
        MissingStatisticsNote(report, summary, options.columns),
        RenderVmNotes(report, *vm, options.vcpu));
  }
  if (options.strips) absl::StrAppend(&out, "\n", StripLegend(*options.strips, strips));
  return out;
}

std::string RenderMany(const Report& report, const Vms& vms, TextOptions options) {
  options.worst_first = true;
  const std::string notes = RenderNotes(report, vms, options.vcpu);
  return absl::StrCat(
      "\n", RenderVmTable(report, vms, options), "\n",
      options.sort ? absl::StrCat("vCPUs by ", std::string(metric::InfoOf(*options.sort).label))
                   : "the vCPUs that were SPINNING or starved most",
      " (--vm VM shows one VM with its strips)\n",
      RenderRows(report, RowsOf(vms, options), options.top.value_or(kVcpusOfMany), true, options),
      notes.empty() ? "" : "\n", notes);
}

// Nothing where there are no phases, or one was asked for.
std::string Phases(const Report& report, const Vms& vms, const TextOptions& options) {
  if (report.phase) return "";
  const size_t least = vms.size() < kManyVms || options.brief ? 24 : 12;
  const size_t most = options.top == 0 ? SIZE_MAX : std::max(options.top.value_or(0), least);
  const std::string table = RenderPhaseTable(report, vms, most, options);
  return table.empty() ? "" : absl::StrCat("\n", table);
}

}  // namespace

std::string ProofText(const v1::CounterProof& proof) {
  const auto hold = std::ranges::count(proof.claims(), "ok", &v1::CounterProof::Claim::state);
  switch (proof.outcome()) {
    case v1::CounterProof::OUTCOME_PROVEN: {
      const auto ipc = std::ranges::find(proof.claims(), "ipc", &v1::CounterProof::Claim::id);
      const bool alike = ipc != proof.claims().end() && ipc->state() == "note";
      return absl::StrCat("counters proven before the recording: ", Plural(hold, "claim"),
                          hold == 1 ? " holds" : " hold",
                          alike ? absl::StrCat("; but ", Printable(ipc->answer())) : "");
    }
    case v1::CounterProof::OUTCOME_DISPROVEN:
      return absl::StrCat("COUNTERS DISPROVEN before the recording: ", ClaimsOf(proof, "fail"));
    default:
      return absl::StrCat("counters not proven before the recording: ", ClaimsOf(proof, "unknown"));
  }
}

std::string RenderText(const Report& report, const TextOptions& options) {
  const Summary& summary = report.summary;
  Vms vms;
  for (const auto& vm : summary.vms()) {
    if (!options.vm || *options.vm == vm.first) vms.push_back(&vm);
  }
  std::string out = Head(report, options);
  if (vms.empty()) out += "\nNo VM was recorded.\n";
  if (options.brief) {
    if (!vms.empty()) absl::StrAppend(&out, "\n", RenderVmTable(report, vms, options));
    out += Phases(report, vms, options);
    const std::string loss = DescribeLoss(report);
    if (!loss.empty()) absl::StrAppend(&out, "\n", Wrapped("LOSS: ", loss));
    return out;
  }
  out +=
      vms.size() < kManyVms ? RenderEach(report, vms, options) : RenderMany(report, vms, options);
  out += Phases(report, vms, options);
  const bool has_hints =
      std::ranges::any_of(vms, [](const auto* vm) { return HasIpcSpinning(vm->second); });
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

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "kvm/counters/errno_advice.h"
#include "kvm/counters/group_layout.h"
#include "kvm/doctor/checks.h"
#include "kvm/doctor/group_probe.h"
#include "kvm/events/event_sets.h"
#include "kvm/proc_files.h"

namespace vcpulse::kvm::doctor {
namespace {

using State = Finding::State;

constexpr char kVpmuRemedy[] =
    "in a virtual machine: give it a vPMU (QEMU: -cpu host,pmu=on; clouds: metal instances); "
    "without one `record` falls back to degraded by itself";
constexpr char kWatchdogRemedy[] =
    "end other profilers, and free the NMI watchdog's counter with `sysctl kernel.nmi_watchdog=0`";

constexpr char kHostAsGuestRemedy[] =
    "none known: its counts would be wrong; record with --event-set degraded";

// A group that ran less than this share of its time gave way to others, %.
constexpr double kWholeShare = 95.0;

std::vector<Event> SetEvents(EventSet set) {
  const std::span<const Event> events = EventsOf(set);
  return {events.begin(), events.end()};
}

struct PmuProbe {
  std::string pmu;    // "" where there is no choice
  bool there = true;  // the thread could be moved to CPUs of that PMU
  GroupProbe probe;
};

std::span<const int> CpusOf(std::span<const Pmu> pmus, const std::string& name) {
  for (const Pmu& pmu : pmus) {
    if (pmu.name == name) return pmu.cpus;
  }
  return {};
}

// The events on each kind of core, with the thread on CPUs of that kind.
std::vector<PmuProbe> ProbeEach(const CounterContext& context, const std::vector<Event>& events,
                                Mode mode) {
  std::vector<PmuProbe> probes;
  for (const GroupLayout& layout : LayoutOf(events, context.cores)) {
    const OnCpus here(CpusOf(context.cores, layout.pmu));
    probes.push_back({layout.pmu, layout.pmu.empty() || here.moved(),
                      ProbeGroup(context.perf, layout.events, mode)});
  }
  return probes;
}

std::string On(const PmuProbe& probe) {
  return probe.pmu.empty() ? "" : absl::StrCat(probe.pmu, ": ");
}

void SetObstacle(std::string answered, std::string fix, Finding& finding) {
  finding.state = State::kFail;
  finding.answered = std::move(answered);
  finding.fix = std::move(fix);
}

void SetRefused(const CounterContext& context, const std::string& where, int error,
                Finding& finding) {
  if (error == EACCES || error == EPERM) {
    finding.state = State::kUnknown;
    finding.answered = absl::StrCat(where, "no permission: see paranoid");
    return;
  }
  OpenAdvice advice = ExplainOpenFailure({.error = error, .event = "cycles"}, context.own);
  SetObstacle(absl::StrCat(where, advice.cause), std::move(advice.remedy), finding);
}

// A group that could not have run: the thread may not run on CPUs of its PMU (a cpuset).
bool CouldNotRun(const PmuProbe& on, Finding& finding) {
  if (on.there || on.probe.Ran()) return false;
  finding.state = State::kUnknown;
  finding.answered = absl::StrCat(On(on), "vcpulse may not run on its CPUs");
  return true;
}

// Whether the events of a recording exist at all; the other checks do not repeat what "pmu" says.
bool NoPmu(const CounterContext& context) {
  const int error = TryOpen(context.perf, EventsOf(EventSet::kCycles).front(), Mode::kHostUser);
  return error == ENOENT || error == ENODEV || error == EOPNOTSUPP;
}

Finding NotTried(std::string id, std::string tried) {
  return {.id = std::move(id),
          .state = State::kUnknown,
          .tried = std::move(tried),
          .answered = "not tried, as there is no PMU"};
}

std::string NamesOf(std::span<const Pmu> pmus) {
  return absl::StrJoin(pmus, ", ",
                       [](std::string* out, const Pmu& pmu) { absl::StrAppend(out, pmu.name); });
}

// What an answer begins with.
std::string In(Mode mode, const PmuProbe& on) {
  return absl::StrCat(On(on), mode == Mode::kGuestOnly ? "guest-only: " : "");
}

// "NAME (absent, errno 2)" for each event that a whole set has not.
std::vector<std::string> Lacking(const CounterContext& context, const GroupProbe& probe) {
  std::vector<std::string> lacking;
  for (const RefusedEvent& refused : probe.refused) {
    if (refused.event.name == "ref-cycles" && context.machine != "x86_64") continue;
    lacking.push_back(absl::StrCat(refused.event.name, " (",
                                   refused.error == EINVAL ? "does not fit" : "absent", ", errno ",
                                   refused.error, ")"));
  }
  return lacking;
}

// Says how much of its time the group ran; a note where others used the PMU meanwhile.
void SayShare(Mode mode, const PmuProbe& on, size_t wanted, Finding& finding) {
  const GroupProbe& probe = on.probe;
  const double share = 100.0 * static_cast<double>(probe.running_ns) /
                       static_cast<double>(std::max(probe.enabled_ns, probe.running_ns));
  const bool shared = on.there && share < kWholeShare;
  if (mode == Mode::kHostUser || shared) {
    absl::StrAppend(&finding.answered, finding.answered.empty() ? "" : "; ", In(mode, on),
                    wanted - probe.refused.size(), wanted == 1 ? " event" : " events",
                    " as one group ran ", absl::StrFormat("%.0f %% of the time", share),
                    shared ? ": others use the PMU" : "");
  }
  if (!shared) return;
  finding.state = State::kNote;
  finding.fix = kWatchdogRemedy;
}

// Answers for one set on one kind of core; true where nothing is missing.
bool JudgeSet(const CounterContext& context, Mode mode, const PmuProbe& on, size_t wanted,
              Finding& finding) {
  const GroupProbe& probe = on.probe;
  if (probe.error != 0) {
    SetRefused(context, In(mode, on), probe.error, finding);
    return false;
  }
  if (const std::vector<std::string> lacking = Lacking(context, probe); !lacking.empty()) {
    SetObstacle(
        absl::StrCat(In(mode, on), "lacks ", absl::StrJoin(lacking, ", ")),
        absl::StrCat("/sys/bus/event_source/devices/*/events lists what exists; ", kVpmuRemedy),
        finding);
    return false;
  }
  if (CouldNotRun(on, finding)) return false;
  if (!probe.Ran()) {
    SetObstacle(
        absl::StrCat(In(mode, on), "opened, but the PMU never ran it: too few free counters"),
        kWatchdogRemedy, finding);
    return false;
  }
  if (mode == Mode::kGuestOnly) {
    for (const auto& [event, count] : probe.counts) {
      if (count == 0) continue;
      SetObstacle(absl::StrCat(In(mode, on), event.name, " counted ", count,
                               ", so this PMU counts the host as guest"),
                  kHostAsGuestRemedy, finding);
      return false;
    }
  }
  SayShare(mode, on, wanted, finding);
  return true;
}

// First as any user may count himself, then as a recording counts.
Finding CheckSet(const CounterContext& context, EventSet set) {
  const std::vector<Event> events = SetEvents(set);
  const bool guest_too = context.mediated.empty();
  Finding finding{.id = absl::StrCat("events-", ToAbsl(ToString(set))),
                  .tried = absl::StrCat("the set ", ToAbsl(ToString(set)),
                                        " as one group on vcpulse itself, counting the host",
                                        guest_too ? ", then guests only" : "")};
  for (const Mode mode : {Mode::kHostUser, Mode::kGuestOnly}) {
    if (mode == Mode::kGuestOnly && !guest_too) break;
    for (const PmuProbe& on : ProbeEach(context, events, mode)) {
      if (!JudgeSet(context, mode, on, events.size(), finding)) return finding;
    }
  }
  if (guest_too) absl::StrAppend(&finding.answered, "; guest-only it counted 0");
  return finding;
}

}  // namespace

std::vector<Finding> CheckPmus(const CounterContext& context) {
  Finding finding{
      .id = "pmu",
      .tried = "core PMUs of /sys/bus/event_source/devices, and cycles on vcpulse itself"};
  const bool none = NoPmu(context);
  if (none) {
    SetObstacle(context.cores.empty()
                    ? "this host has no PMU: no device, and the kernel has no 'cycles' event"
                    : absl::StrCat(NamesOf(context.cores), ", which has no 'cycles' event"),
                kVpmuRemedy, finding);
    return {finding};
  }
  finding.answered = context.cores.empty() ? "cycles opens, though sysfs shows no PMU of the cores"
                                           : NamesOf(context.cores);
  if (context.cores.size() < 2) return {finding};
  std::vector<std::string> kinds;
  for (const Pmu& pmu : context.cores) {
    kinds.push_back(absl::StrCat(pmu.name, " on ", pmu.cpus.size(), " CPUs"));
  }
  return {finding,
          {.id = "hybrid",
           .state = State::kNote,
           .tried = "CPUs of each core PMU",
           .answered = absl::StrCat(absl::StrJoin(kinds, ", "),
                                    ": each counts on its own CPUs only, and each vCPU takes one "
                                    "group per kind")}};
}

Finding CheckHostCycles(const CounterContext& context) {
  Finding finding{.id = "host-cycles", .tried = "cycles of the host during a busy loop of vcpulse"};
  if (NoPmu(context)) return NotTried(finding.id, finding.tried);
  const std::vector<Event> events = SetEvents(EventSet::kCycles);
  for (const PmuProbe& on : ProbeEach(context, events, Mode::kHostUser)) {
    if (on.probe.error != 0) {
      SetRefused(context, On(on), on.probe.error, finding);
      return finding;
    }
    if (CouldNotRun(on, finding)) return finding;
    if (!on.probe.Ran() || on.probe.LeaderCount() == 0) {
      SetObstacle(absl::StrCat(On(on), "opened, but counted ", on.probe.LeaderCount(), " in ",
                               on.probe.running_ns, " ns on the PMU"),
                  kWatchdogRemedy, finding);
      return finding;
    }
    absl::StrAppend(&finding.answered, finding.answered.empty() ? "" : "; ", On(on),
                    absl::StrFormat("%.2f GHz", static_cast<double>(on.probe.LeaderCount()) /
                                                    static_cast<double>(on.probe.running_ns)));
  }
  return finding;
}

Finding CheckGuestOnly(const CounterContext& context) {
  Finding finding{
      .id = "guest-only",
      .tried = "cycles of guests only during a busy loop of vcpulse, which is not a guest"};
  if (!context.mediated.empty()) {
    finding.state = State::kUnknown;
    finding.answered = "not tried, as KVM runs with a mediated vPMU";
    return finding;
  }
  if (NoPmu(context)) return NotTried(finding.id, finding.tried);
  for (const PmuProbe& on : ProbeEach(context, SetEvents(EventSet::kCycles), Mode::kGuestOnly)) {
    if (on.probe.error != 0) {
      SetRefused(context, On(on), on.probe.error, finding);
      return finding;
    }
    if (CouldNotRun(on, finding)) return finding;
    if (!on.probe.Ran()) {
      SetObstacle(absl::StrCat(On(on), "opened, but the PMU never ran it"), kWatchdogRemedy,
                  finding);
      return finding;
    }
    if (on.probe.LeaderCount() != 0) {
      SetObstacle(absl::StrCat(On(on), "counted ", on.probe.LeaderCount(),
                               ", so this PMU counts the host as guest"),
                  kHostAsGuestRemedy, finding);
      return finding;
    }
  }
  finding.answered = "opened, ran, counted 0";
  return finding;
}

std::vector<Finding> CheckEventSets(const CounterContext& context) {
  constexpr std::array kLadder = {EventSet::kFull, EventSet::kCore, EventSet::kBranches,
                                  EventSet::kMin, EventSet::kCycles};
  std::vector<Finding> findings;
  const bool none = NoPmu(context);
  for (const EventSet set : kLadder) {
    if (none) {
      findings.push_back(NotTried(absl::StrCat("events-", ToAbsl(ToString(set))),
                                  absl::StrCat("the set ", ToAbsl(ToString(set)))));
      continue;
    }
    Finding finding = CheckSet(context, set);
    if (finding.state == State::kFail && set != EventSet::kFull) finding.state = State::kNote;
    findings.push_back(std::move(finding));
  }
  // What full has more only makes verdicts surer, and many PMUs are too small for it.
  if (findings[0].state == State::kFail && findings[1].state == State::kOk) {
    findings[0].state = State::kNote;
  }
  return findings;
}

Finding CheckNmiWatchdog(const std::string& root) {
  Finding finding{.id = "nmi-watchdog", .tried = "/proc/sys/kernel/nmi_watchdog"};
  const std::optional<std::string> text = ReadSmallFile(root + "/proc/sys/kernel/nmi_watchdog");
  if (!text) {
    finding.answered = "this kernel has none";
  } else if (text->starts_with('0')) {
    finding.answered = "off";
  } else {
    finding.state = State::kNote;
    finding.answered = "on: it takes one counter of each CPU";
    finding.fix = "`sysctl kernel.nmi_watchdog=0` frees it";
  }
  return finding;
}

}  // namespace vcpulse::kvm::doctor

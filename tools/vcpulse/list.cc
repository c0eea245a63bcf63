// `vcpulse list`: the VMs and vCPUs of this host, as a table or as JSON; `list events` and `list
// profiles`.
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/json.h"
#include "kvm/base/text.h"
#include "kvm/counters/errno_advice.h"
#include "kvm/counters/group_opener.h"
#include "kvm/counters/perf_events.h"
#include "kvm/discovery/discovery.h"
#include "kvm/events/event_probe.h"
#include "kvm/host.h"
#include "kvm/vm.h"
#include "monitor/profile/installed.h"
#include "monitor/profile/profile.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/target_options.h"

namespace vcpulse::tools {
namespace {

struct ListEventsOptions {
  std::string pattern;  // a part of a name, or a name with wildcards; empty: all but tracepoints
  bool json = false;
  std::string root = "/";  // where /proc and /sys are read from
};

namespace json = boost::json;

// An event and what the kernel said to it.
struct Row {
  kvm::ListedEvent listed;
  std::optional<int> error;  // of perf_event_open, 0: it opened; nothing: it was not tried
  std::string answer;
};

bool NoPermission(const Row& row) { return row.error == EACCES || row.error == EPERM; }

std::string_view Counts(const Row& row) {
  // Tracepoints that could not be resolved have no event that would say so.
  return row.listed.event.host_side || row.listed.kind == "tracepoint" ? "host-side" : "guest";
}

// Hardware events are not opened beside a mediated vPMU, not even for a moment: a VM that starts
// then would not.
std::vector<Row> Probe(kvm::PerfEvents& perf, std::vector<kvm::ListedEvent> events,
                       const std::string& mediated) {
  std::vector<Row> rows;
  for (kvm::ListedEvent& listed : events) {
    Row row;
    row.answer = listed.obstacle;
    if (row.answer.empty() && !mediated.empty() && !listed.event.host_side) {
      row.answer = "not tried: mediated vPMU";
    }
    if (row.answer.empty()) {
      row.error = kvm::TryToOpen(perf, listed.event);
      row.answer = kvm::OpenAnswer(*row.error);
    }
    row.listed = std::move(listed);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string TableOf(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> cells = {{"EVENT", "KIND", "COUNTS", "THIS HOST"}};
  for (const Row& row : rows) {
    std::string name = row.listed.name;
    if (!row.listed.aliases.empty()) {
      absl::StrAppend(&name, " (", absl::StrJoin(row.listed.aliases, ", "), ")");
    }
    cells.push_back({name, row.listed.kind, std::string(Counts(row)), row.answer});
  }
  return Aligned(cells, 0);
}

json::object JsonOf(const Row& row) {
  json::array aliases;
  for (const std::string& alias : row.listed.aliases) aliases.push_back(JsonText(alias));
  json::object object;
  object["name"] = JsonText(row.listed.name);
  object["aliases"] = std::move(aliases);
  object["kind"] = JsonText(row.listed.kind);
  object["counts"] = Counts(row) == "guest" ? "guest" : "host";
  object["opens"] = row.error && !NoPermission(row) ? json::value(*row.error == 0) : nullptr;
  object["errno"] = row.error ? json::value(*row.error) : json::value(nullptr);
  object["answer"] = JsonText(row.answer);
  return object;
}

// One event per line, so that a person can read it and grep it.
std::string JsonOf(const std::vector<Row>& rows) {
  std::string text = "[";
  for (size_t i = 0; i < rows.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? ",\n " : "", json::serialize(JsonOf(rows[i])));
  }
  return text + "]\n";
}

// What the whole list suffers from, once.
void SayObstacles(const std::vector<Row>& rows, const kvm::EventCatalog& catalog,
                  const std::string& mediated, const std::string& root) {
  if (catalog.core_pmus().empty()) {
    Note(
        "this host shows no PMU of its CPUs (is it a virtual machine without vPMU?): it has no "
        "hardware and cache events");
  }
  if (!mediated.empty()) Note(mediated);
  const auto refused = std::ranges::find_if(rows, NoPermission);
  if (refused == rows.end()) return;
  Note(kvm::AdviseOnOpenFailure({.error = *refused->error,
                                 .event = refused->listed.name,
                                 .tid = ::getpid(),
                                 .paranoid = kvm::PerfEventParanoid(root)}) +
       "; whether the events exist is unknown until then");
}

// Tracepoints may be what was meant.
std::string WhyNoTracepoint(const kvm::EventCatalog& catalog) {
  const absl::Status status = catalog.TracepointId("any", "any").status();
  return absl::IsFailedPrecondition(status) ? absl::StrCat(": ", status.message()) : "";
}

// Lists the events of this host and whether each opens. Returns the exit code; what the kernel
// refuses is an answer, no error.
int RunListEvents(const ListEventsOptions& options) {
  if (absl::Status status = CheckRoot(options.root); !status.ok()) return Fail(status);
  const kvm::EventCatalog catalog(options.root);
  kvm::KernelPerfEvents perf;
  const std::string mediated = kvm::MediatedVpmuObstacle(options.root);
  const std::vector<Row> rows = Probe(perf, kvm::ListEvents(catalog, options.pattern), mediated);
  SayObstacles(rows, catalog, mediated, options.root);
  if (rows.empty()) {
    return Fail("no event matches '" + options.pattern + "'" + WhyNoTracepoint(catalog));
  }
  std::string text = options.json ? JsonOf(rows) : TableOf(rows);
  if (!options.json && options.pattern.empty()) {
    const size_t tracepoints = catalog.Tracepoints().size();
    absl::StrAppend(&text, "\n", tracepoints,
                    tracepoints > 0
                        ? " tracepoints, host-side: `vcpulse list events 'kvm:*'` shows some"
                        : " tracepoints can be read (they need root and a mounted tracefs)",
                    "\n");
  }
  return WriteStdout(text);
}

struct ListProfilesOptions {
  std::string root = "/";
  std::optional<std::string> name;  // nothing: all of them, else the JSON of this one
  bool json = false;
};

namespace json = boost::json;

std::string CpusOf(const profile::Profile& profile) {
  return profile.cpu ? profile.cpu->ToText() : "any";
}

// One that is installed may have the name of one that is built in.
bool IsSame(const profile::Profile& one, const profile::Profile& other) {
  return one.name == other.name && one.source == other.source;
}

std::string TableOf(const std::vector<profile::Profile>& all, const profile::Profile& chosen) {
  std::vector<std::vector<std::string>> cells = {{"", "PROFILE", "CPUS", "DESCRIPTION"}};
  for (const profile::Profile& profile : all) {
    cells.push_back(
        {IsSame(profile, chosen) ? "*" : "", profile.name, CpusOf(profile), profile.description});
  }
  return absl::StrCat(Aligned(cells, 0), "\n* chosen on this host\n");
}

// One profile per line, so that a person can read it and grep it.
std::string JsonOf(const std::vector<profile::Profile>& all, const profile::Profile& chosen) {
  std::string text = "[";
  for (const profile::Profile& profile : all) {
    json::object object;
    object["name"] = JsonText(profile.name);
    object["cpus"] = profile.cpu ? json::value(JsonText(CpusOf(profile))) : nullptr;
    object["description"] = JsonText(profile.description);
    object["chosen"] = IsSame(profile, chosen);
    object["source"] = JsonText(profile.source);
    absl::StrAppend(&text, text.size() > 1 ? ",\n " : "", json::serialize(object));
  }
  return text + "]\n";
}

// Prints the profiles that are built in or installed, or one. Returns the exit code; what went
// wrong was printed.
int RunListProfiles(const ListProfilesOptions& options) {
  if (absl::Status status = CheckRoot(options.root); !status.ok()) return Fail(status);
  if (options.name) {
    const auto profile = profile::LoadOnHost(*options.name, options.root);
    if (!profile.ok()) return Fail(profile.status());
    return WriteStdout(profile::ToJson(*profile));
  }
  const auto chosen = profile::ChooseForHost(options.root);
  if (!chosen.ok()) return Fail(chosen.status());
  if (!chosen->note.empty()) Fail(chosen->note);
  std::vector<profile::Profile> all(profile::BuiltIn().begin(), profile::BuiltIn().end());
  if (const auto installed = profile::Installed(options.root); installed.ok()) {
    all.insert(all.end(), installed->begin(), installed->end());
  }
  return WriteStdout(options.json ? JsonOf(all, chosen->profile) : TableOf(all, chosen->profile));
}

namespace json = boost::json;

constexpr std::string_view kTcgRefusal = "TCG: refused, its counters would read zero";

struct ListOptions {
  live::Target target;
  bool json = false;
};

std::string TextOf(const kvm::Vm& vm) {
  std::string text = absl::StrCat(vm.name, "  PID ", vm.pid);
  if (!vm.uuid.empty()) absl::StrAppend(&text, "  UUID ", vm.uuid);
  absl::StrAppend(&text, "  ", ToAbsl(kvm::ToString(vm.accelerator)));
  if (vm.accelerator == kvm::Accelerator::kTcg) {
    return absl::StrCat(text, "\n  ", ToAbsl(kTcgRefusal), "\n");
  }
  absl::StrAppend(&text, "  ", vm.vcpus.size(), vm.vcpus.size() == 1 ? " vCPU\n" : " vCPUs\n");
  std::vector<std::vector<std::string>> rows = {{"VCPU", "TID", "KVM-ID", "FOUND BY", "PROOF"}};
  for (const kvm::Vcpu& vcpu : vm.vcpus) {
    rows.push_back({absl::StrCat(vcpu.index), absl::StrCat(vcpu.tid),
                    vcpu.kvm_id ? absl::StrCat(*vcpu.kvm_id) : "-",
                    std::string(kvm::ToString(vcpu.found_by)),
                    std::string(kvm::ToString(vcpu.proof))});
  }
  if (!vm.vcpus.empty()) text += Aligned(rows, 2);
  for (const std::string& note : vm.notes) absl::StrAppend(&text, "  note: ", note, "\n");
  return text;
}

json::value JsonOf(const kvm::Vm& vm) {
  json::array vcpus;
  for (const kvm::Vcpu& vcpu : vm.vcpus) {
    json::object object;
    object["index"] = vcpu.index;
    object["tid"] = vcpu.tid;
    object["start_time_ticks"] = vcpu.start_time_ticks;
    object["kvm_id"] = vcpu.kvm_id ? json::value(*vcpu.kvm_id) : json::value(nullptr);
    object["found_by"] = JsonText(kvm::ToString(vcpu.found_by));
    object["proof"] = JsonText(kvm::ToString(vcpu.proof));
    vcpus.push_back(std::move(object));
  }
  json::array notes;
  for (const std::string& note : vm.notes) notes.push_back(JsonText(note));

  json::object object;
  object["name"] = JsonText(vm.name);
  object["pid"] = vm.pid;
  object["start_time_ticks"] = vm.start_time_ticks;
  object["uuid"] = vm.uuid.empty() ? json::value(nullptr) : json::value(JsonText(vm.uuid));
  object["accelerator"] = JsonText(kvm::ToString(vm.accelerator));
  object["refused"] = vm.accelerator == kvm::Accelerator::kTcg ? json::value(JsonText(kTcgRefusal))
                                                               : json::value(nullptr);
  object["vcpus"] = std::move(vcpus);
  object["notes"] = std::move(notes);
  return object;
}

// One VM per line, so that a person can read it and grep it.
std::string JsonOf(const std::vector<kvm::Vm>& vms) {
  std::string text = "[";
  for (size_t i = 0; i < vms.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? ",\n " : "", json::serialize(JsonOf(vms[i])));
  }
  return text + "]\n";
}

int RunList(const ListOptions& options) {
  if (absl::Status status = CheckRoot(options.target.root); !status.ok()) return Fail(status);
  const absl::StatusOr<std::vector<kvm::Vm>> vms =
      live::Find(kvm::Discovery(options.target.root), options.target);
  if (!vms.ok()) return Fail(vms.status());
  if (vms->empty()) {
    std::fputs(geteuid() == 0
                   ? "vcpulse: no VM runs on this host\n"
                   : "vcpulse: no VM found (only root can identify the VMs of other users)\n",
               stderr);
  }
  std::string text;
  if (options.json) {
    text = JsonOf(*vms);
  } else {
    for (const kvm::Vm& vm : *vms) absl::StrAppend(&text, text.empty() ? "" : "\n", TextOf(vm));
  }
  return WriteStdout(text);
}

}  // namespace

void AddListCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* command = app.add_subcommand("list", "List the VMs and vCPUs of this host");
  AddTargetOptions(*command, options->target);
  command->remove_option(command->get_option("--all"));  // it lists all of them in any case
  command->add_flag("--json", options->json, "an array of VMs; what is absent is null");

  auto event_options = std::make_shared<ListEventsOptions>();
  CLI::App* events = command->add_subcommand(
      "events", "List the events that --events takes, and which of them this host can open");
  events->add_option("PATTERN", event_options->pattern,
                     "a part of a name, a name with wildcards, or a kind; tracepoints are listed "
                     "only where one is given");
  events->add_flag("--json", event_options->json,
                   "an array of events; opens is null where it could not be told");
  auto profile_options = std::make_shared<ListProfilesOptions>();
  CLI::App* profiles = command->add_subcommand(
      "profiles", "List the profiles (thresholds by CPU), and which one is for this host");
  profiles
      ->add_option("NAME", profile_options->name,
                   "print this one, or a file's, as JSON with each number's origin: to copy and "
                   "edit for --profile")
      ->type_name("PROFILE|FILE");
  profiles->add_flag("--json", profile_options->json,
                     "an array of profiles; NAME is printed as JSON in any case");
  command->callback([=, &exit_code] {
    const char* const about_host = events->parsed()     ? "events"
                                   : profiles->parsed() ? "profiles"
                                                        : nullptr;
    if (about_host == nullptr) {
      exit_code = RunList(*options);
    } else if (options->target.IsOne()) {
      exit_code = Fail(absl::StrCat("`list ", about_host, "` is about this host: it takes no VM"));
    } else if (events->parsed()) {
      event_options->json = event_options->json || options->json;
      event_options->root = options->target.root;
      exit_code = RunListEvents(*event_options);
    } else {
      profile_options->json = profile_options->json || options->json;
      profile_options->root = options->target.root;
      exit_code = RunListProfiles(*profile_options);
    }
  });
}

}  // namespace vcpulse::tools

// `vcpulse list`: the VMs and vCPUs of this host, as a table or as JSON; `list events` and `list
// profiles`.
#include <boost/json.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/base/json.h"
#include "kvm/base/text.h"
#include "kvm/discovery/discovery.h"
#include "kvm/vm.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/list_events.h"
#include "tools/vcpulse/list_profiles.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/target_options.h"

namespace vcpulse::tools {
namespace {

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
    std::fputs(
        "vcpulse: no VM found; a VM is a process with a kvm-vm descriptor, and those of other "
        "users are proven to root only\n",
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
  CLI::App* command = app.add_subcommand(
      "list", "VMs and vCPUs found on this host, how, and which of them run without KVM");
  AddTargetOptions(*command, options->target);
  command->add_flag("--json", options->json, "an array of VMs; what is absent is null");

  auto event_options = std::make_shared<ListEventsOptions>();
  CLI::App* events = command->add_subcommand(
      "events", "the events that --events takes, and which of them this host opens");
  events->add_option("PATTERN", event_options->pattern,
                     "a part of a name, a name with wildcards, or a kind; tracepoints are listed "
                     "only where one is given");
  events->add_flag("--json", event_options->json,
                   "an array of events; opens is null where it could not be told");
  auto profile_options = std::make_shared<ListProfilesOptions>();
  CLI::App* profiles = command->add_subcommand(
      "profiles",
      "the numbers that vCPUs are judged by, for which CPUs, and which are this host's");
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
    } else if (options->target.IsOne() || options->target.all) {
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

#include "tools/vcpulse/target.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/own_rights.h"

namespace vcpulse::tools {
namespace {

// A silent QMP socket belongs to another client; a live one greets within milliseconds.
constexpr absl::Duration kQmpTimeout = absl::Seconds(2);

// PIDs and TIDs that Linux can give (PID_MAX_LIMIT).
const CLI::Range kThreadId(1, 4194304);

}  // namespace

void AddTargetOptions(CLI::App& command, TargetOptions& options) {
  auto* target = command.add_option_group("TARGET", "which VMs; default: all that are found");
  target->add_option("--vm", options.vm, "the VM with this name or UUID")->type_name("NAME");
  target->add_option("--pid", options.pid, "the VM of this VMM process")
      ->type_name("PID")
      ->check(kThreadId);
  target->add_option("--qmp", options.qmp, "the VM behind this QMP socket")
      ->type_name("unix:PATH|tcp:HOST:PORT");
  target->add_option("--tid", options.tids, "these vCPU threads of one VM")
      ->type_name("TID[,TID...]")
      ->delimiter(',')
      ->check(kThreadId);
  target->add_flag("--all", options.all,
                   "all VMs, and those that start later; goes on without any");
  target->require_option(0, 1);
  command
      .add_option("--root", options.root,
                  "read /proc and /sys below this directory, the host's mounted in a container [/]")
      ->type_name("DIR");
}

bool IsTcg(const kvm::Vm& vm) { return vm.accelerator == kvm::Accelerator::kTcg; }

bool IsUsable(const kvm::Vm& vm) { return !IsTcg(vm) && !vm.vcpus.empty(); }

absl::Status CheckRoot(const std::string& root) {
  if (root.empty()) return absl::InvalidArgumentError("--root: DIR is empty");
  std::error_code error;
  if (std::filesystem::is_directory(std::filesystem::path(root) / "proc", error)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--root: there is no ", root, root.ends_with('/') ? "" : "/",
                   "proc; give the directory below which the host's /proc and /sys are mounted"));
}

absl::Status CheckPidsAreOurs(const std::string& root) {
  if (kvm::PidsAreOurs(root)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--root: the PIDs in ", root,
      "/proc are not those of this process's PID namespace, so their "
      "counters cannot be opened: run it in the host's (docker --pid=host, Kubernetes hostPID: "
      "true)"));
}

absl::StatusOr<std::vector<kvm::Vm>> FindTarget(const kvm::Discovery& discovery,
                                                const TargetOptions& options) {
  if (!options.IsOne()) return discovery.FindAll();
  absl::StatusOr<kvm::Vm> vm = !options.vm.empty() ? discovery.FindByName(options.vm)
                               : options.pid != 0  ? discovery.FindByPid(options.pid)
                               : !options.qmp.empty()
                                   ? discovery.FindByQmp(options.qmp, kQmpTimeout)
                                   : discovery.FindByTids(options.tids);
  if (!vm.ok()) return vm.status();
  return std::vector<kvm::Vm>{*std::move(vm)};
}

}  // namespace vcpulse::tools

#include "tools/vcpulse/target_options.h"

#include <filesystem>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/own_rights.h"

namespace vcpulse::tools {
namespace {

// PIDs and TIDs that Linux can give (PID_MAX_LIMIT).
const CLI::Validator kThreadId = CLI::Range(1, 4194304).description("");

}  // namespace

void AddTargetOptions(CLI::App& command, live::Target& target) {
  auto* group = command.add_option_group("TARGET", "which VMs; default: all that are found");
  group->add_option("--vm", target.vm, "the VM with this name or UUID")->type_name("NAME");
  group->add_option("--pid", target.pid, "the VM of this VMM process")
      ->type_name("PID")
      ->check(kThreadId);
  group->add_option("--qmp", target.qmp, "the VM behind this QMP socket")
      ->type_name("unix:PATH|tcp:HOST:PORT");
  group->add_option("--tid", target.tids, "these vCPU threads of one VM")
      ->type_name("TID[,TID...]")
      ->delimiter(',')
      ->check(kThreadId);
  group->add_flag("--all", target.all, "all VMs, and those that start later; goes on without any");
  group->require_option(0, 1);
  command
      .add_option("--root", target.root,
                  "read /proc and /sys below this directory, the host's mounted in a container [/]")
      ->type_name("DIR");
}

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

}  // namespace vcpulse::tools

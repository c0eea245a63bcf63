#include "tools/vcpulse/target_options.h"

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kvm/base/text.h"
#include "kvm/own_rights.h"

namespace vcpulse::tools {
namespace {

// PIDs and TIDs that Linux can give (PID_MAX_LIMIT).
constexpr pid_t kMostThreadId = 4194304;
const CLI::Validator kProcessId(
    [](const std::string& text) {
      pid_t pid = 0;
      const bool is_pid = absl::SimpleAtoi(text, &pid) && pid >= 1 && pid <= kMostThreadId;
      return is_pid ? "" : absl::StrCat(Quoted(text), " is not a PID (1 to ", kMostThreadId, ")");
    },
    "");

// "1,2,3". Errors: InvalidArgument where a part is empty or not a thread ID.
absl::StatusOr<std::vector<pid_t>> ParseTids(const std::string& text) {
  std::vector<pid_t> tids;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
    if (part.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", Printable(text), "' has an empty part: write TID[,TID...]"));
    }
    pid_t tid = 0;
    if (!absl::SimpleAtoi(part, &tid) || tid < 1 || tid > kMostThreadId) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", Printable(part), "' is not a thread ID (1 to ", kMostThreadId, ")"));
    }
    tids.push_back(tid);
  }
  return tids;
}

// A list by CLI11's own delimiter would drop empty parts.
CLI::Option* AddTids(CLI::App& command, std::vector<pid_t>& tids) {
  return command
      .add_option(
          "--tid",
          [&tids](const std::vector<std::string>& given) {
            tids.clear();
            for (const std::string& text : given) {
              const std::vector<pid_t> more = *ParseTids(text);  // checked
              tids.insert(tids.end(), more.begin(), more.end());
            }
            return true;
          },
          "these vCPU threads of one VM")
      ->type_name("TID[,TID...]")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(CLI::Validator(
          [](const std::string& text) { return std::string(ParseTids(text).status().message()); },
          ""));
}

}  // namespace

void AddTargetOptions(CLI::App& command, live::Target& target) {
  const std::vector<CLI::Option*> one_of = {
      command.add_option("--vm", target.vm, "the VM with this name or UUID")->type_name("VM"),
      command.add_option("--pid", target.pid, "the VM of this VMM process")
          ->type_name("PID")
          ->check(kProcessId),
      command.add_option("--qmp", target.qmp, "the VM behind this QMP socket")
          ->type_name("unix:PATH|tcp:HOST:PORT"),
      AddTids(command, target.tids),
      command.add_flag("--all", target.all,
                       "all VMs, including those that start later; runs on when none is left"),
  };
  for (CLI::Option* option : one_of) {
    option->group(kTargetGroup);
    for (CLI::Option* other : one_of) {
      if (other != option) option->excludes(other);
    }
  }
  command
      .add_option("--root", target.root,
                  "read /proc and /sys below DIR: the host's, mounted into a container [/]")
      ->type_name("DIR")
      ->group(kTargetGroup);
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

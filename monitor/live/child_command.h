#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace vcpulse::live {

// The command after `--`: runs while the recording runs. Its orphaned descendants (a launcher's
// QEMU is a grandchild) become ours, so that their VMs are found. One thread.
class ChildCommand {
 public:
  // Starts it with this limit of descriptors. Errors: NotFound, PermissionDenied or another of
  // execve(2) where it cannot be executed; Internal where no process could be made for it.
  static absl::StatusOr<ChildCommand> Start(const std::vector<std::string>& arguments,
                                            const rlimit& descriptors);

  // Reaps what has ended; the command's exit code (128 + n where signal n ended it) once it has.
  std::optional<int> Poll();

  // Passes a signal on to the command, if it still runs.
  void Signal(int signal) const;

 private:
  explicit ChildCommand(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  std::optional<int> exit_code_;
};

}  // namespace vcpulse::live

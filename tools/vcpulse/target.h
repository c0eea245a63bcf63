#pragma once

// Which VMs a command is about.

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kvm/discovery/discovery.h"
#include "kvm/vm.h"

namespace CLI {
class App;
}

namespace vcpulse::tools {

// The TARGET options. At most one of the five is given; none means every VM that is found.
struct TargetOptions {
  std::string vm;  // name or UUID
  pid_t pid = 0;
  std::string qmp;  // unix:PATH or tcp:HOST:PORT
  std::vector<pid_t> tids;
  bool all = false;        // every VM, and wait for more when none is left
  std::string root = "/";  // where /proc and /sys are read from

  // One VM was asked for by one of its names.
  bool IsOne() const { return !vm.empty() || pid != 0 || !qmp.empty() || !tids.empty(); }
};

bool IsTcg(const kvm::Vm& vm);
// Runs KVM, and its vCPU threads are known.
bool IsUsable(const kvm::Vm& vm);

// OK, or InvalidArgument: there is no proc/ below `root`.
absl::Status CheckRoot(const std::string& root);

// Whether the PIDs below `root` are those that this process may use in system calls: OK, or
// FailedPrecondition where its /proc is another PID namespace's (the host's, seen from a container
// that has its own).
absl::Status CheckPidsAreOurs(const std::string& root);

// Adds --vm, --pid, --qmp, --tid and --all, of which one may be given, and --root.
void AddTargetOptions(CLI::App& command, TargetOptions& options);

// The VMs that the options mean now. Errors: of kvm::Discovery, for IsOne(); without it an empty
// list is no error. TCG VMs are in the list.
absl::StatusOr<std::vector<kvm::Vm>> FindTarget(const kvm::Discovery& discovery,
                                                const TargetOptions& options);

}  // namespace vcpulse::tools

#pragma once

// The TARGET options of the commands that look at this host.

#include <string>

#include "absl/status/status.h"
#include "monitor/live/target.h"

namespace CLI {
class App;
}

namespace vcpulse::tools {

// Of --help: what says which VMs are meant.
inline constexpr const char* kTargetGroup = "Target (default: all VMs)";

// OK, or InvalidArgument: there is no proc/ below `root`.
absl::Status CheckRoot(const std::string& root);

// Whether the PIDs below `root` are those that this process may use in system calls: OK, or
// FailedPrecondition where its /proc is another PID namespace's (the host's, seen from a container
// that has its own).
absl::Status CheckPidsAreOurs(const std::string& root);

// Adds --vm, --pid, --qmp, --tid and --all, of which one may be given, and --root.
void AddTargetOptions(CLI::App& command, live::Target& target);

}  // namespace vcpulse::tools

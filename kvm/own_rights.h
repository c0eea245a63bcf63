#pragma once

// What this process may do: capabilities, seccomp, descriptor limits.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace vcpulse::kvm {

// Capability numbers of <linux/capability.h>, those that matter here.
enum class Capability : int {
  kDacReadSearch = 2,
  kSysPtrace = 19,
  kSysAdmin = 21,
  kSysNice = 23,
  kPerfmon = 38,  // from Linux 5.8
  kBpf = 39,      // likewise
};

// What could not be read is absent.
struct OwnRights {
  std::optional<uint64_t> effective;      // CapEff of /proc/self/status
  std::optional<int> seccomp;             // 0 none, 1 strict, 2 a filter
  std::optional<uint64_t> open_files;     // the hard limit; absent too where it is "unlimited"
  std::optional<unsigned> effective_uid;  // second number of the Uid line

  // False where the capabilities are unknown.
  bool Has(Capability capability) const {
    return effective && (*effective >> static_cast<int>(capability) & 1) != 0;
  }
  // May load a program of the kinds that need it (kernel: bpf_capable).
  bool MayLoadBpf() const { return Has(Capability::kBpf) || Has(Capability::kSysAdmin); }
  // May count other users' processes at kernel.perf_event_paranoid 2 (kernel: perfmon_capable).
  bool MayMonitor() const { return Has(Capability::kPerfmon) || Has(Capability::kSysAdmin); }
};

// The text of /proc/self/status (proc_pid_status(5)); without `open_files`. Pure.
OwnRights ParseOwnRights(std::string_view status);

// Those of this process. `root` as in Discovery. The limit is asked of the kernel, as a process
// without a descriptor left can read no file.
OwnRights ReadOwnRights(const std::string& root);

// Whether the PIDs below `root` are those that this process may use in system calls; false where
// its /proc is another PID namespace's (the host's, seen from a container that has its own).
bool PidsAreOurs(const std::string& root);

// Gives up what a process was given and does not need. For good: it does not come back with exec.

struct KeptRights {
  bool low_ports = false;  // CAP_NET_BIND_SERVICE: ports below 1024
};

// The capabilities (bits by number, as CapEff of /proc) that are kept of those that a process has.
// For root: what gives it its access to files. For any other user: none but those that `kept`
// names. Pure.
uint64_t RightsToKeep(const KeptRights& kept, bool is_root);

// Drops every other capability of this thread, and so of those that it starts, and sets
// no_new_privs. Called before there is another thread. Errors: those of capget(2), capset(2) and
// prctl(2).
absl::Status DropRights(const KeptRights& kept);

}  // namespace vcpulse::kvm

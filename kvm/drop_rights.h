#pragma once

// Gives up what a process was given and does not need. For good: it does not come back with exec.

#include <cstdint>

#include "absl/status/status.h"

namespace vcpulse::kvm {

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

#pragma once

// monitor/live is one recording as it runs: which VMs, when to write, when to end. It prints
// nothing and parses no flag: `vcpulse record` and the C library both drive it.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kvm/discovery/discovery.h"
#include "kvm/vm.h"

namespace vcpulse::live {

// Which VMs are meant. At most one of the first five is given; none means every VM that is found.
struct Target {
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

// The VMs that are meant now. Errors: of kvm::Discovery, for IsOne(); without it an empty list is
// no error. TCG VMs are in the list.
absl::StatusOr<std::vector<kvm::Vm>> Find(const kvm::Discovery& discovery, const Target& target);

// The VMs to begin with: looks again for up to `patience` while there is none that can be recorded,
// and calls `begins_to_wait` (may be empty) before the first time. Errors: as Find; NotFound where
// there is none at all in the end (never with `all`); they say how long it waited.
absl::StatusOr<std::vector<kvm::Vm>> FindWithPatience(
    const Target& target, absl::Duration patience,
    const std::function<void()>& begins_to_wait = {});

}  // namespace vcpulse::live

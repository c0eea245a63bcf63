#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "kvm/proc_files.h"

namespace vcpulse::kvm {

// Processes that were looked at and are no VMM, so that a search each second does not read the
// descriptors of every process of the host. A process is looked at again while it is new to us
// (its first 10 s: it may open /dev/kvm yet), then every 15 to 30 s, and when its PID was used anew
// or it has called execve (its name changes): that is checked in every fifth round, unless the PID
// was gone in between. A known VMM without a VM (a Firecracker that waits on its API socket) stays
// new. Time is the caller's: any clock that only goes forward. One thread.
class NonVmmCache {
 public:
  // Begins a round of the search.
  void BeginRound(absl::Duration now);

  // Whether not even the stat of this process need be read in this round.
  bool IsTrusted(pid_t pid);

  // Whether this process need not be looked at in this round.
  bool MayBePassedOver(pid_t pid, const TaskStat& stat, std::string_view name);

  // It was looked at in this round and has no VM. `vmm`: its program is a known VMM, which may
  // create one at any time.
  void Remember(pid_t pid, const TaskStat& stat, std::string_view name, bool vmm);

  // Forgets those that were not asked for in this round: they have ended.
  void EndRound();

  size_t size() const { return known_.size(); }

 private:
  struct Process {
    uint64_t start_time_ticks = 0;
    std::string name;
    absl::Duration first_seen;
    absl::Duration look_again;
    bool settled = false;  // no longer new
    uint64_t round = 0;    // the last one in which it was there
  };

  std::map<pid_t, Process> known_;
  absl::Duration now_ = absl::ZeroDuration();
  uint64_t round_ = 0;
};

}  // namespace vcpulse::kvm

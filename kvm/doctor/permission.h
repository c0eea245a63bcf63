#pragma once

// May this process count?

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "kvm/counters/perf_events.h"
#include "kvm/doctor/finding.h"
#include "kvm/own_rights.h"
#include "kvm/vm.h"

namespace vcpulse::kvm::doctor {

// "paranoid": opens a software clock on the calling thread with kernel mode included, as guest
// counters need it: what kernel.perf_event_paranoid forbids is refused here, PMU or not.
Finding CheckParanoid(PerfEvents& perf, const std::string& root, const OwnRights& own);

// "pid-namespace": whether the PIDs below `root` are those that system calls take here.
Finding CheckPidNamespace(const std::string& root);

// "other-users": the same on the first vCPU of each VM, which may be another user's. A VM that is
// refused is an obstacle; nothing is recorded only where all of them are. Where no VM shows a vCPU,
// PID 1 stands for other users, and its refusal is a note. `pids_are_ours`: of CheckPidNamespace;
// where false nothing is opened, as the TID would be another thread's.
std::vector<Finding> CheckOtherUsers(PerfEvents& perf, const std::string& root,
                                     const OwnRights& own, std::span<const Vm> vms,
                                     bool pids_are_ours);

// All of the above, then "capabilities" and "seccomp". Where a VM opens, a refusal of one's own
// thread does not prevent a recording.
std::vector<Finding> CheckPermission(PerfEvents& perf, const std::string& root,
                                     const OwnRights& own, std::span<const Vm> vms);

// "capabilities": those that vcpulse can use, and what is not to be had without each missing one.
Finding CheckCapabilities(const OwnRights& own);

// "seccomp": whether a filter is active, as in most containers.
Finding CheckSeccomp(const OwnRights& own);

}  // namespace vcpulse::kvm::doctor

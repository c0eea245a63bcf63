#pragma once

// May this process count?

#include <sys/types.h>

#include <string>

#include "kvm/counters/perf_events.h"
#include "kvm/doctor/finding.h"
#include "kvm/own_rights.h"

namespace vcpulse::kvm::doctor {

// "paranoid": opens a software clock on the calling thread with kernel mode included, as guest
// counters need it: what kernel.perf_event_paranoid forbids is refused here, PMU or not.
Finding CheckParanoid(PerfEvents& perf, const std::string& root, const OwnRights& own);

// "other-users": the same on the thread `tid` of process `pid`, which may be another user's. `what`
// names it for people.
Finding CheckOtherUsers(PerfEvents& perf, const std::string& root, const OwnRights& own, pid_t pid,
                        pid_t tid, const std::string& what);

// "capabilities": those that vcpulse can use, and what is not to be had without each missing one.
Finding CheckCapabilities(const OwnRights& own);

// "seccomp": whether a filter is active, as in most containers.
Finding CheckSeccomp(const OwnRights& own);

}  // namespace vcpulse::kvm::doctor

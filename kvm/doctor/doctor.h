#pragma once

// All checks of a host, in the order in which a person would mend what they find.

#include <string>
#include <vector>

#include "kvm/counters/perf_events.h"
#include "kvm/doctor/finding.h"

namespace vcpulse::kvm::doctor {

// Takes about 0.1 s, and up to 0.3 s more for each QMP socket that stays silent (at most 8 are
// asked). Opens counters on the calling thread and on the first vCPU of each VM, and closes them.
// `root` as in Discovery; the counters are those of the running kernel.
std::vector<Finding> Examine(PerfEvents& perf, const std::string& root);

}  // namespace vcpulse::kvm::doctor

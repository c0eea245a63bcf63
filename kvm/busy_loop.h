#pragma once

#include "absl/time/time.h"

namespace vcpulse::kvm {

// Keeps the calling thread computing for `span` of wall time, for counters that have to move.
void BurnCpu(absl::Duration span);

// Keeps the calling thread in PAUSE (x86) or YIELD (arm64) for `span` of wall time.
void PauseCpu(absl::Duration span);

}  // namespace vcpulse::kvm

#pragma once

#include "absl/time/time.h"

namespace vcpulse::kvm {

// Keeps the calling thread computing for `span` of wall time, for counters that have to move.
void BurnCpu(absl::Duration span);

}  // namespace vcpulse::kvm

#pragma once

#include <sys/types.h>

#include <cstdint>

#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::timeline {

// What a clock of the kernel (CLOCK_MONOTONIC ...) shows now, ns.
int64_t ClockNow_ns(clockid_t clock);

// The clocks of this host now, CLOCK_MONOTONIC first.
v1::ClockSnapshot TakeClockSnapshot();

}  // namespace vcpulse::timeline

#pragma once

#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::timeline {

// The clocks of this host now, CLOCK_MONOTONIC first.
v1::ClockSnapshot TakeClockSnapshot();

}  // namespace vcpulse::timeline

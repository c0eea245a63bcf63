#pragma once

#include <cstdint>

#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::stream {

// CLOCK_MONOTONIC, ns: what sessions are given as time.
int64_t MonotonicNow_ns();

// CLOCK_REALTIME, ns since 1970.
int64_t RealtimeNow_ns();

// The clocks of this host now, as a peer is told them.
v1::ClockSnapshot ClocksNow();

}  // namespace vcpulse::stream

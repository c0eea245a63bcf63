#pragma once

#include <cstdint>

namespace vcpulse::stream {

// CLOCK_MONOTONIC, ns: what sessions are given as time.
int64_t MonotonicNow_ns();

// CLOCK_REALTIME, ns since 1970.
int64_t RealtimeNow_ns();

}  // namespace vcpulse::stream

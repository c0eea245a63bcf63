#include "monitor/stream/net/clocks.h"

#include <time.h>

#include "monitor/timeline/clock_snapshot.h"

namespace vcpulse::stream {

int64_t MonotonicNow_ns() { return timeline::ClockNow_ns(CLOCK_MONOTONIC); }

int64_t RealtimeNow_ns() { return timeline::ClockNow_ns(CLOCK_REALTIME); }

}  // namespace vcpulse::stream

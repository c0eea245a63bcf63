#include "monitor/timeline/clock_snapshot.h"

#include <time.h>

namespace vcpulse::timeline {

int64_t ClockNow_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

v1::ClockSnapshot TakeClockSnapshot() {
  v1::ClockSnapshot clocks;
  clocks.set_mono_ns(ClockNow_ns(CLOCK_MONOTONIC));
  clocks.set_boottime_ns(ClockNow_ns(CLOCK_BOOTTIME));
  clocks.set_realtime_ns(ClockNow_ns(CLOCK_REALTIME));
  return clocks;
}

}  // namespace vcpulse::timeline

#include "monitor/timeline/clock_snapshot.h"

#include "kvm/base/clock.h"

namespace vcpulse::timeline {

v1::ClockSnapshot TakeClockSnapshot() {
  v1::ClockSnapshot clocks;
  clocks.set_mono_ns(ClockNow_ns(CLOCK_MONOTONIC));
  clocks.set_boottime_ns(ClockNow_ns(CLOCK_BOOTTIME));
  clocks.set_realtime_ns(ClockNow_ns(CLOCK_REALTIME));
  return clocks;
}

}  // namespace vcpulse::timeline

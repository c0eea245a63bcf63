#include "monitor/stream/net/clocks.h"

#include <time.h>

namespace vcpulse::stream {
namespace {

int64_t Now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

int64_t MonotonicNow_ns() { return Now_ns(CLOCK_MONOTONIC); }

int64_t RealtimeNow_ns() { return Now_ns(CLOCK_REALTIME); }

}  // namespace vcpulse::stream

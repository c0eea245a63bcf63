#pragma once

#include <time.h>

#include <cstdint>

namespace vcpulse {

inline constexpr int64_t kNsPerSecond = 1'000'000'000;

constexpr int64_t ToNs(const timespec& time) {
  return int64_t{time.tv_sec} * kNsPerSecond + time.tv_nsec;
}

constexpr timespec ToTimespec(int64_t ns) {
  return {.tv_sec = ns / kNsPerSecond, .tv_nsec = ns % kNsPerSecond};
}

constexpr double ToSeconds(double ns) { return ns / 1e9; }
constexpr double ToSeconds(int64_t ns) { return ToSeconds(static_cast<double>(ns)); }

// What a clock of the kernel shows now, ns. Any thread.
inline int64_t ClockNow_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return ToNs(now);
}

// CLOCK_MONOTONIC: what records and sessions are stamped with.
inline int64_t MonotonicNow_ns() { return ClockNow_ns(CLOCK_MONOTONIC); }

// CLOCK_REALTIME, since 1970.
inline int64_t RealtimeNow_ns() { return ClockNow_ns(CLOCK_REALTIME); }

// MonotonicNow_ns, or what a test injects.
using Clock = int64_t (*)();

}  // namespace vcpulse

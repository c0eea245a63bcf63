#pragma once

#include <time.h>

#include <cstdint>

#include "absl/time/time.h"

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

// The end of a wait, on CLOCK_MONOTONIC: a step of the wall clock neither ends nor lengthens it.
// absl::Now() follows CLOCK_REALTIME, so product code does not use it (a test greps).
class Deadline {
 public:
  // `from_now` may be negative (over already) or infinite (never over).
  explicit Deadline(absl::Duration from_now, Clock now_ns = MonotonicNow_ns)
      : now_ns_(now_ns), end_(absl::Nanoseconds(now_ns()) + from_now) {}

  // What is left of it; not positive once it is over.
  absl::Duration left() const { return end_ - absl::Nanoseconds(now_ns_()); }
  bool over() const { return left() <= absl::ZeroDuration(); }

 private:
  Clock now_ns_;
  absl::Duration end_;  // since CLOCK_MONOTONIC's zero
};

}  // namespace vcpulse

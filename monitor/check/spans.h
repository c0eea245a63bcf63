#pragma once

// Stretches of time and what they have in common. Pure.

#include <cstdint>
#include <span>
#include <vector>

namespace vcpulse::check {

// CLOCK_MONOTONIC; `from_ns` is part of it, `to_ns` is not.
struct TimeRange {
  int64_t from_ns = 0;
  int64_t to_ns = 0;

  int64_t Length() const { return to_ns - from_ns; }
  bool operator==(const TimeRange&) const = default;
};

// `instant` within 36 years of the clock's zero, so that sums and differences of instants never
// overflow whatever a damaged file says.
int64_t WithinReason(int64_t instant_ns);

// Stretches in order, where those that touch or overlap are one; empty ones are left out.
std::vector<TimeRange> Joined(std::vector<TimeRange> stretches);

// What lies in one of `spans` and in one of `windows`, in order. `spans` are in order and do not
// overlap (they may touch: what lies in two of them is two stretches), `windows` are as Joined
// makes them.
std::vector<TimeRange> Common(std::span<const TimeRange> spans, std::span<const TimeRange> windows);

int64_t TotalLength(std::span<const TimeRange> stretches);

}  // namespace vcpulse::check

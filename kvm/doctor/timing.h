#pragma once

// How late a thread wakes up here: what a tick will see.

#include <cstdint>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "kvm/doctor/finding.h"

namespace vcpulse::kvm::doctor {

// Sleeps up to `count` times until absolute deadlines `period` apart (CLOCK_MONOTONIC), as the tick
// does, on a thread of its own with timer slack 1 ns. Each sleep's lateness, ns. Ends after 0.3 s
// however late they are.
std::vector<int64_t> MeasureLateness_ns(int count, absl::Duration period);

// "wake-ups": a note where the 99th percentile is over 1 ms.
Finding CheckLateness(std::span<const int64_t> lateness_ns);

}  // namespace vcpulse::kvm::doctor

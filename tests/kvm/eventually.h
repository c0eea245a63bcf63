#pragma once

// Waiting for what must come, with a bound that no machine is too slow for.

#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace vcpulse::kvm_tests {

inline constexpr absl::Duration kLong = absl::Seconds(30);

// Whether the condition became true within kLong; asked every 50 ms.
inline bool Eventually(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + kLong;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(50));
  }
  return true;
}

}  // namespace vcpulse::kvm_tests

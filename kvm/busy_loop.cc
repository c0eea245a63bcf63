#include "kvm/busy_loop.h"

#include <cstdint>

#include "kvm/base/clock.h"

namespace vcpulse::kvm {

void BurnCpu(absl::Duration span) {
  const int64_t end_ns = ClockNow_ns(CLOCK_MONOTONIC_RAW) + absl::ToInt64Nanoseconds(span);
  volatile uint64_t sink = 0;
  while (ClockNow_ns(CLOCK_MONOTONIC_RAW) < end_ns) {
    for (int i = 0; i < 1000; ++i) sink = sink + 1;
  }
}

void PauseCpu(absl::Duration span) {
  const int64_t end_ns = ClockNow_ns(CLOCK_MONOTONIC_RAW) + absl::ToInt64Nanoseconds(span);
  while (ClockNow_ns(CLOCK_MONOTONIC_RAW) < end_ns) {
    for (int i = 0; i < 100; ++i) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("yield");
#endif
    }
  }
}

}  // namespace vcpulse::kvm

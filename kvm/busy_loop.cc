#include "kvm/busy_loop.h"

#include <cstdint>
#include <ctime>

namespace vcpulse::kvm {
namespace {

int64_t RawClock_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

void BurnCpu(absl::Duration span) {
  const int64_t end_ns = RawClock_ns() + absl::ToInt64Nanoseconds(span);
  volatile uint64_t sink = 0;
  while (RawClock_ns() < end_ns) {
    for (int i = 0; i < 1000; ++i) sink = sink + 1;
  }
}

void PauseCpu(absl::Duration span) {
  const int64_t end_ns = RawClock_ns() + absl::ToInt64Nanoseconds(span);
  while (RawClock_ns() < end_ns) {
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

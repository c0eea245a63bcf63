#include "kvm/base/signals.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "kvm/base/clock.h"

namespace vcpulse {
namespace {

// A signal that comes between a look at `stopped` and the sleep is seen after so long.
constexpr int64_t kLongestSleep_ns = 200'000'000;

volatile std::sig_atomic_t stopped = 0;

}  // namespace

void StopWaitsOnSignals() {
  struct sigaction action{};
  action.sa_handler = [](int) { stopped = 1; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  prctl(PR_SET_TIMERSLACK, 1);  // else every sleep may be 50 us longer
}

bool WasStopped() { return stopped != 0; }

absl::Status WaitUntil(int64_t mono_ns) {
  while (!WasStopped()) {
    const int64_t now_ns = MonotonicNow_ns();
    if (now_ns >= mono_ns) return absl::OkStatus();
    const int64_t until_ns = std::min(mono_ns, now_ns + kLongestSleep_ns);
    const timespec until = ToTimespec(until_ns);
    const int error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    if (error != 0 && error != EINTR) return absl::ErrnoToStatus(error, "cannot sleep");
  }
  return absl::CancelledError("stopped by a signal");
}

}  // namespace vcpulse

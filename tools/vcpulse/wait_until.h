#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace vcpulse::tools {

// From now on SIGINT, SIGTERM and SIGHUP end a wait instead of the process. Call it once, before
// any wait.
void StopWaitsOnSignals();

// Whether such a signal came.
bool WasStopped();

// Sleeps until that instant of CLOCK_MONOTONIC, to some microseconds. Cancelled where a signal said
// stop, before or within.
absl::Status WaitUntil(int64_t mono_ns);

}  // namespace vcpulse::tools

#pragma once

#include <cstdint>

namespace vcpulse::control {

// CLOCK_MONOTONIC, injected.
using Clock = int64_t (*)();

}  // namespace vcpulse::control

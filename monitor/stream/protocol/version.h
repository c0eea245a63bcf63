#pragma once

#include <cstdint>

namespace vcpulse::stream {

// Of the protocol (proto/vcpulse/v1/stream.proto).
inline constexpr uint32_t kMajor = 1;
inline constexpr uint32_t kMinMajor = 1;
inline constexpr uint32_t kMinor = 0;

}  // namespace vcpulse::stream

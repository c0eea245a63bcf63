#pragma once

#include <cstddef>
#include <string>

namespace vcpulse::stream {

// Bytes of the names in Hello and Welcome at most, and of a reason.
inline constexpr size_t kMaxNameBytes = 256;
inline constexpr size_t kMaxReasonBytes = 512;

// A text as it may be sent or shown, whatever it holds: one line of valid UTF-8, at most
// `max_bytes` (more is cut off behind a whole character).
std::string OneLine(std::string text, size_t max_bytes);

}  // namespace vcpulse::stream

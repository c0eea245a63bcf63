#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vcpulse {

// Length in bytes of the well-formed sequence at the start of `text` (RFC 3629, section 4), or 0.
// `text` is not empty.
inline size_t Utf8SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto in = [&](size_t i, uint8_t low, uint8_t high) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const auto tail = [&](size_t i) { return in(i, 0x80, 0xBF); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool second = lead == 0xE0   ? in(1, 0xA0, 0xBF)
                        : lead == 0xED ? in(1, 0x80, 0x9F)  // no surrogates
                                       : tail(1);
    return second && tail(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool second = lead == 0xF0   ? in(1, 0x90, 0xBF)
                        : lead == 0xF4 ? in(1, 0x80, 0x8F)
                                       : tail(1);
    return second && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace vcpulse

#pragma once

// The one seam between std::string_view (our interfaces) and absl::string_view, which do not
// convert into each other in Debian's abseil, and number parsing that refuses what it does not
// know.

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/string_view.h"

namespace vcpulse {

inline absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ToStd(absl::string_view text) { return {text.data(), text.size()}; }

// The whole of `text` as a number, or nothing: no white space, no sign where T is unsigned, no
// overflow, no trailing characters.
template <typename T>
std::optional<T> ParseNumber(std::string_view text, int base = 10) {
  T value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, base);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

}  // namespace vcpulse

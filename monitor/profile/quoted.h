#pragma once

#include <string>
#include <string_view>

namespace vcpulse::profile {

// Text of a profile within a message: in quotes, one line of what a terminal shows as it is, cut
// where it is long.
inline std::string Quoted(std::string_view text) {
  constexpr size_t kMost = 40;
  std::string quoted = "'";
  for (const char c : text.substr(0, kMost)) quoted += c >= ' ' && c <= '~' ? c : '?';
  return quoted + (text.size() > kMost ? "...'" : "'");
}

}  // namespace vcpulse::profile

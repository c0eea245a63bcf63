#pragma once

// Terminals whose control sequences are compiled in.

#include <span>
#include <string_view>

namespace vcpulse::terminal {

struct TerminfoEntry {
  std::string_view name;
  std::string_view terminfo;  // as the variable TERMINFO takes it: "b64:..." (terminfo(5))
};

std::span<const TerminfoEntry> TerminfoEntries();

}  // namespace vcpulse::terminal

#pragma once

// Texts from a timeline within sentences for people.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vcpulse::reading {

std::string Plural(uint64_t n, std::string_view word);  // "1 gap", "2 gaps"

// `text` from a file, safe for a terminal: control characters (an escape sequence in a VM's name)
// become '?'.
std::string Printable(std::string_view text);

// "a, b, c and 5 more" of a list that would be too long.
std::string Listed(const std::vector<std::string>& items, size_t at_most);

}  // namespace vcpulse::reading

#pragma once

// The one seam between std::string_view (our interfaces) and absl::string_view, which do not
// convert into each other in Debian 12's abseil; number parsing that refuses what it does not know;
// texts from elsewhere within sentences for people.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

std::string Plural(uint64_t n, std::string_view word);  // "1 gap", "2 gaps"

std::string WithThousands(uint64_t value);  // "1,234,567"

// `text` from a file, safe for a terminal: control characters (an escape sequence in a VM's name)
// become '?'.
std::string Printable(std::string_view text);

// What was found, as a message shows it: 'one line in quotes', of what is longer the beginning and
// "...". Valid UTF-8, whatever it holds.
std::string Quoted(std::string_view text, size_t max_bytes = 40);

// A path likewise, never cut.
inline std::string QuotedPath(std::string_view path) { return Quoted(path, path.size()); }

// "256 MiB", "1.5 GiB", "17 bytes": at most one decimal.
std::string SizeText(uint64_t bytes);

// "a, b, c and 5 more" of a list that would be too long.
std::string Listed(const std::vector<std::string>& items, size_t at_most);

// Length in bytes of the well-formed sequence at the start of `text` (RFC 3629, section 4), or 0.
// `text` is not empty.
size_t Utf8SequenceLength(std::string_view text);

// Each byte that is not part of valid UTF-8 becomes '?'.
void MakeUtf8(std::string* text);

// `text` without what is beyond `max_bytes`, and no half of a character at its end.
std::string_view CutUtf8(std::string_view text, size_t max_bytes);

}  // namespace vcpulse

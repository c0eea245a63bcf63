#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vcpulse {

// Length in bytes of the well-formed sequence at the start of `text` (RFC 3629, section 4), or 0.
// `text` is not empty.
size_t Utf8SequenceLength(std::string_view text);

// Each byte that is not part of valid UTF-8 becomes '?'.
void MakeUtf8(std::string* text);

// `text` without what is beyond `max_bytes`, and no half of a character at its end.
std::string_view CutUtf8(std::string_view text, size_t max_bytes);

}  // namespace vcpulse

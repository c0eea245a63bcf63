#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace vcpulse::control {

inline constexpr size_t kLongestMarkerName_bytes = 256;

// The name of a marker, without the spaces around it: 1 to kLongestMarkerName_bytes of UTF-8
// without control characters. Errors: InvalidArgument, "column N: ...", one line; columns are
// characters, and `text` begins in `first_column`.
absl::StatusOr<std::string> CheckMarkerName(std::string_view text, size_t first_column = 1);

}  // namespace vcpulse::control

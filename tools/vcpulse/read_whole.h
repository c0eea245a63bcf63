#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace vcpulse::tools {

// All bytes of a file; `-` is standard input. Errors, all of which name the file: what the system
// said, and ResourceExhausted beyond `at_most` bytes.
absl::StatusOr<std::string> ReadWhole(const std::string& file, size_t at_most);

}  // namespace vcpulse::tools

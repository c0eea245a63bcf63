#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace vcpulse::tools {

// How many times as fast as recorded: "1", "10", "0.5"; nothing for "max", which waits for nothing.
// Errors: InvalidArgument in one line for anything else, and below 0.001 or beyond 1,000,000.
absl::StatusOr<std::optional<double>> ParseSpeed(const std::string& text);

}  // namespace vcpulse::tools

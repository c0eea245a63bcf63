#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace vcpulse::tools {

// A duration as a person writes it: "100ms", "1.5s", "2m", "1h", "1h30m", "500us". Errors:
// InvalidArgument in one line that begins with the flag, for a plain number ("--duration: '10' has
// no unit: write 10s or 10ms"), a negative or too long one (over 100 years), and anything else.
absl::StatusOr<absl::Duration> ParseDurationOption(const std::string& flag,
                                                   const std::string& text);

// The same for what may take long: "30d", "1.5d" are days.
absl::StatusOr<absl::Duration> ParseLongDurationOption(const std::string& flag,
                                                       const std::string& text);

}  // namespace vcpulse::tools

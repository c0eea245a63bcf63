#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace vcpulse::tools {

// Bytes as a person writes them: "64MiB", "1G", "1.5GiB", "500MB". K, M, G and T are powers of 1024
// with or without "iB", and of 1000 with "B". Errors: InvalidArgument in one line that begins with
// the flag, for a plain number ("--spool-size: '64' has no unit: write 64M or 64G"), a negative or
// too large one (over 1 EiB), and anything else.
absl::StatusOr<uint64_t> ParseSizeOption(const std::string& flag, const std::string& text);

// "256 MiB", "1.5 GiB", "17 bytes": at most one decimal.
std::string SizeText(uint64_t bytes);

}  // namespace vcpulse::tools

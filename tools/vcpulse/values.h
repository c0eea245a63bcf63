#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace vcpulse::tools {

// A duration as a person writes it: "100ms", "1.5s", "2m", "1h", "1h30m", "500us". Errors:
// InvalidArgument in one line that begins with the flag, for a plain number ("--duration: '10' has
// no unit: write 10s or 10ms"), a negative or too long one (over 100 years), and anything else.
absl::StatusOr<absl::Duration> ParseDurationOption(const std::string& flag,
                                                   const std::string& text);

// The same, and more than 0.
absl::StatusOr<absl::Duration> ParseTimeOption(const std::string& flag, const std::string& text);

// The same for what may take long: "30d", "1.5d" are days.
absl::StatusOr<absl::Duration> ParseLongDurationOption(const std::string& flag,
                                                       const std::string& text);

// Bytes as a person writes them: "64MiB", "1G", "1.5GiB", "500MB". K, M, G and T are powers of 1024
// with or without "iB", and of 1000 with "B". Errors: InvalidArgument in one line that begins with
// the flag, for a plain number ("--spool-size: '64' has no unit: write 64M or 64G"), a negative or
// too large one (over 1 EiB), and anything else.
absl::StatusOr<uint64_t> ParseSizeOption(const std::string& flag, const std::string& text);

// How many times as fast as recorded: "1", "10", "0.5"; nothing for "max", which waits for nothing.
// Errors: InvalidArgument in one line for anything else, and below 0.001 or beyond 1,000,000.
absl::StatusOr<std::optional<double>> ParseSpeed(const std::string& text);

// Adds an option that may be given several times, one value each: an option that is a vector would
// take "[a,b]" apart, and the words after its value. `values` must live as long as `command`.
CLI::Option* AddRepeatable(CLI::App& command, const std::string& name,
                           std::vector<std::string>& values, const std::string& help);

// Adds --allow-skip, of the commands that judge.
void AddAllowSkip(CLI::App& command, bool& allow_skip);

// "--vm=" becomes "--vm" and an empty value, which is refused by name; CLI11 would take the next
// argument for the value.
void SpellOutEmptyValues(std::vector<std::string>& arguments);

}  // namespace vcpulse::tools

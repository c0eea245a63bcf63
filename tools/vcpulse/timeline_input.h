#pragma once

// What the commands that read a timeline say of it.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::tools {

// "standard input" for `-`.
std::string NameOf(const std::string& file);

// Why a timeline could not be read, with advice where there is no such file.
absl::Status ReadFailure(const absl::Status& status, const std::string& file);

// Reads a timeline. Errors: what `sink` returned as it is, else ReadFailure.
absl::StatusOr<timeline::ReadReport> ReadInput(const std::string& file,
                                               const timeline::EntrySink& sink);

// Prints a warning about the file on stderr; nothing where `text` is empty.
void Warn(const std::string& file, const std::string& text);

}  // namespace vcpulse::tools

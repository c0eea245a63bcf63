#pragma once

// `report --html` and `report --serve`.

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "monitor/page/contents.h"

namespace vcpulse::tools {

// What can be said of the two options, where given, before anything is read.
absl::Status CheckPageOptions(const std::string& file, const std::optional<std::string>& html,
                              const std::optional<std::string>& serve);

// Writes the page to `output`, `-` being standard output. Returns the exit code.
int WritePage(const page::Contents& contents, const std::string& output);

// Serves the page of `file` at `address` until Ctrl-C; prints its URL. Returns the exit code.
int ServePage(const std::string& file, const std::string& address);

}  // namespace vcpulse::tools

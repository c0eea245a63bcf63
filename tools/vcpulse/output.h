#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace vcpulse::tools {

// Writes text to standard output and flushes it. Cancelled where its reader went away (`| head` has
// seen enough); else what write(2) said.
absl::Status WriteToStdout(std::string_view text);

// The same for all of a command's output: prints what failed and gives the exit code, success where
// the reader went away.
int WriteStdout(const std::string& text);

// Whether the reader of standard output, a pipe or a socket, went away.
bool StdoutReaderHasGone();

// Whether colours are wanted there: a terminal, and NO_COLOR is not set.
bool WantsColour();
// The same for `choice`: "always" and "never" are what they say, "auto" is as above.
bool WantsColour(std::string_view choice);

// How many columns it shows: COLUMNS, else the terminal's width; nothing where neither is known.
std::optional<size_t> WidthOfStdout();

// Rows of cells as lines, each column as wide as its widest cell, indented.
std::string Aligned(const std::vector<std::vector<std::string>>& rows, size_t indent);

}  // namespace vcpulse::tools

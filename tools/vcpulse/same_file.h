#pragma once

#include <string>

#include "absl/status/status.h"

namespace vcpulse::tools {

// InvalidArgument where writing `output` would overwrite, or put aside as OUTPUT.old, the regular
// file that `input` is read from, or would add to the folder of timelines that it is. `-` are
// standard input and output. `flag` is what named the output.
absl::Status CheckNotSameFile(const std::string& input, const std::string& output,
                              const std::string& flag = "--output");

}  // namespace vcpulse::tools

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "monitor/live/options.h"
#include "tools/vcpulse/uplink_options.h"

namespace vcpulse::tools {

// What `vcpulse record` was asked for.
struct RecordOptions : live::Options {
  std::vector<std::string> command;
  bool require_guest = false;                           // an error where none was recorded
  std::string metrics;                                  // address to serve metrics at; empty: none
  std::optional<stream::RecordUplink::Options> uplink;  // nothing: to a file alone

  // InvalidArgument with one line that names the flag, or OK.
  absl::Status Validate() const;
};

// Records until something ends it. Returns the exit code; what went wrong was printed.
int RunRecord(const RecordOptions& options);

}  // namespace vcpulse::tools

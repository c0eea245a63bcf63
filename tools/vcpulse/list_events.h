#pragma once

#include <string>

namespace vcpulse::tools {

struct ListEventsOptions {
  std::string pattern;  // a part of a name, or a name with wildcards; empty: all but tracepoints
  bool json = false;
  std::string root = "/";  // where /proc and /sys are read from
};

// Lists the events of this host and whether each opens. Returns the exit code; what the kernel
// refuses is an answer, no error.
int RunListEvents(const ListEventsOptions& options);

}  // namespace vcpulse::tools

#pragma once

#include <optional>
#include <string>

namespace vcpulse::tools {

struct ListProfilesOptions {
  std::string root = "/";
  std::optional<std::string> name;  // nothing: all of them, else the JSON of this one
  bool json = false;
};

// Prints the profiles that are built in, or one. Returns the exit code; what went wrong was
// printed.
int RunListProfiles(const ListProfilesOptions& options);

}  // namespace vcpulse::tools

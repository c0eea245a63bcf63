#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace vcpulse::fakes {

// Makes a new folder for one test below the system's temporary one; removing it is the caller's.
// Empty where it cannot be made.
inline std::filesystem::path MakeTemporaryFolder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "vcpulse-test-").string() + std::string(6, 'X');
  return ::mkdtemp(pattern.data()) == nullptr ? "" : pattern;
}

}  // namespace vcpulse::fakes

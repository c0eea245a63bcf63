#pragma once

#include <span>
#include <string_view>

namespace vcpulse::page {

// assets/* as they were when the program was built, scripts in the order in which they run.
struct Asset {
  std::string_view file;
  std::string_view text;
};
std::span<const Asset> Assets();

}  // namespace vcpulse::page

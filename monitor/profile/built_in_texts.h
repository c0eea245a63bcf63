#pragma once

#include <span>
#include <string_view>

namespace vcpulse::profile {

// data/*.json as they were when the program was built, bases before what is based on them. The
// program may run where no file is.
struct BuiltInText {
  std::string_view file;
  std::string_view json;
};
std::span<const BuiltInText> BuiltInTexts();

}  // namespace vcpulse::profile

#pragma once

// Boost.JSON of Debian 12 takes its own string_view, not std's.

#include <boost/json/string.hpp>
#include <string_view>

namespace vcpulse::tools {

inline boost::json::string JsonText(std::string_view text) {
  return boost::json::string(text.data(), text.size());
}

}  // namespace vcpulse::tools

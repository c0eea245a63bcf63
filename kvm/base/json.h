#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "boost/json.hpp"

namespace vcpulse {

// Indented JSON with a final newline, for people and diff: one member per line, arrays of scalars
// on one line, doubles in their shortest exact form ("0.5", where Boost.JSON's own text is "5E-1").
// A double that is no number (NaN, infinite) becomes null: JSON knows none.
std::string ToJsonText(const boost::json::value& value);

// The members of `object` on one line with a final newline, numbers likewise.
std::string ToJsonLine(const boost::json::object& object);

// Boost.JSON takes its own string_view in Debian 12's release, not std's.
inline boost::json::string JsonText(std::string_view text) {
  return boost::json::string(text.data(), text.size());
}

template <typename T>
boost::json::value OrNull(const std::optional<T>& value) {
  if (!value) return nullptr;
  return boost::json::value_from(*value);
}

boost::json::value NameOrNull(std::optional<std::string_view> name);

// A text that may be any bytes: JSON escapes control characters, but is UTF-8.
boost::json::value Utf8Text(std::string_view text);
boost::json::array Utf8Texts(const std::vector<std::string>& texts);

// Null for an empty text.
boost::json::value TextOrNull(std::string_view text);

// Null for 0, where that is no number: of a process, an errno.
boost::json::value NumberOrNull(int64_t number);

}  // namespace vcpulse

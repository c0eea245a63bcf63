#pragma once

// Reads fields of JSON objects; every error is InvalidArgument, one line "PATH: what is wrong".

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace vcpulse::profile {

absl::Status WrongField(const std::string& path, const std::string& what);

// "thresholds.halted_enter"; `key` alone where `path` is empty.
std::string Join(const std::string& path, std::string_view key);

// A value as messages name it: 'text', 0.5, null, a list, an object.
std::string Described(const boost::json::value& value);

// Null where the object has no such field.
const boost::json::value* Find(const boost::json::object& object, std::string_view key);

// OK where every field of the object is known; else the first that is not, with the nearest name.
absl::Status CheckKeys(const boost::json::object& object, const std::string& path,
                       std::span<const std::string> known);

// The value as an object of known fields.
absl::StatusOr<const boost::json::object*> ReadObject(const boost::json::value& value,
                                                      const std::string& path,
                                                      std::span<const std::string> known);

// One line of text, not empty, at most `longest` bytes.
absl::StatusOr<std::string> ReadText(const boost::json::object& object, const std::string& path,
                                     std::string_view key, size_t longest);

absl::StatusOr<double> ReadNumber(const boost::json::value& value, const std::string& path);

// A whole number as such, or as the text of a hexadecimal one ("0x55").
absl::StatusOr<uint64_t> ReadCode(const boost::json::value& value, const std::string& path,
                                  uint64_t highest);

}  // namespace vcpulse::profile

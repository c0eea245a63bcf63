#pragma once

// JSON text as a value, with what Boost.JSON's own parser does not give: each number as
// std::from_chars reads it (1.81 is off by one bit for some), the place of an error, and fields
// that come twice are one.

#include <boost/json/value.hpp>
#include <string_view>

#include "absl/status/statusor.h"

namespace vcpulse::profile {

// Every number becomes a double. InvalidArgument: "line 3, column 5: ...".
absl::StatusOr<boost::json::value> ParseExactJson(std::string_view text);

}  // namespace vcpulse::profile

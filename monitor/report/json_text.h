#pragma once

#include <string>

#include "boost/json/fwd.hpp"

namespace vcpulse::report {

// Indented JSON with a final newline, for people and diff: one member per line, arrays of scalars
// on one line, doubles in their shortest exact form ("0.5", where Boost.JSON's own text is "5E-1").
// A double that is no number (NaN, infinite) becomes null: JSON knows none.
std::string ToJsonText(const boost::json::value& value);

}  // namespace vcpulse::report

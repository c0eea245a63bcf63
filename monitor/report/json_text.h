#pragma once

#include <string>

#include "boost/json/fwd.hpp"

namespace vcpulse::report {

// Indented JSON with a final newline, for people and diff: one member per line, arrays of scalars
// on one line, doubles in their shortest exact form ("0.5", where Boost.JSON's own text is "5E-1").
// A double that is no number (NaN, infinite) becomes null: JSON knows none.
std::string ToJsonText(const boost::json::value& value);

// The members of `object` on one line with a final newline, numbers likewise.
std::string ToJsonLine(const boost::json::object& object);

}  // namespace vcpulse::report

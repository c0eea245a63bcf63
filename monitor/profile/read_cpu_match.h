#pragma once

#include <boost/json/value.hpp>

#include "absl/status/statusor.h"
#include "monitor/profile/cpu_match.h"

namespace vcpulse::profile {

// The field "cpu" of a profile. Errors as in json_fields.h.
absl::StatusOr<CpuMatch> ReadCpuMatch(const boost::json::value& value);

}  // namespace vcpulse::profile

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "monitor/report/explain.h"

namespace vcpulse::tools {

// The value of `report --explain`: "vcpu=N[,vm=VM][,at=T]" in any order; a comma within VM belongs
// to it. Errors: InvalidArgument in one line that says what is allowed.
absl::StatusOr<report::ExplainTarget> ParseExplainTarget(const std::string& text);

}  // namespace vcpulse::tools

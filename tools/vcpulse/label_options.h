#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/recorder/session_record.h"

namespace vcpulse::tools {

// What `record --label` was given, "rack=12" each, ordered by key. A key is a name that Prometheus
// takes for a label ([a-zA-Z_][a-zA-Z0-9_]*, no __ before it, at most 63 bytes), a value is text of
// one line without commas, 1 to 253 bytes. Errors: InvalidArgument in one line that names the
// label, also for a key that comes twice and for more than 32 labels.
absl::StatusOr<std::vector<recorder::HostIdentity::Label>> ParseLabels(
    const std::vector<std::string>& texts);

}  // namespace vcpulse::tools

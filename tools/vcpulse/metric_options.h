#pragma once

// Metrics as options name them, and as help texts list them: taken from the table of metric.h.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/metric/metric.h"

namespace vcpulse::tools {

// "ghz,branch_miss_rate". Errors: InvalidArgument, one line that names what is known.
absl::StatusOr<std::vector<metric::Metric>> ParseMetrics(const std::string& keys);

// A line per metric that `is_listed`: its key, with `behind` for those that are no shares, and what
// it is.
std::string MetricLines(bool (*is_listed)(const metric::Info&), const std::string& behind = "");

// "residency, ipc, ...": the metrics that are columns of CSV and keys of JSON lines.
std::string RowMetrics();

}  // namespace vcpulse::tools

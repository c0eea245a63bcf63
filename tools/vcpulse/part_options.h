#pragma once

// Which part of a timeline a command reads: --from, --until and --phase.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/metric/metric.h"
#include "monitor/reading/part.h"

namespace CLI {
class App;
}

namespace vcpulse::tools {

struct PartOptions {
  std::string from{};  // durations after the recording's start, as written; empty: not given
  std::string until{};
  std::optional<std::string> phase{};
};

// Adds the three options to `command`; a phase excludes the other two.
void AddPartOptions(CLI::App& command, PartOptions& options);

// Errors: InvalidArgument in one line for what is no duration, and for an end that is not after the
// beginning.
absl::StatusOr<reading::Part> ParsePart(const PartOptions& options);

// How many bytes are read of the input for that part, in `readings` of it and what a phase takes
// besides. Nothing where that is not known: of a part from or until a time, and of a pipe.
std::optional<uint64_t> BytesOfPart(const timeline::Input& input, const PartOptions& options,
                                    uint64_t readings = 1);

// "no tick in phase 'boot'", "no tick in the part asked for (from 2s to the end)": for a part in
// which there is nothing.
std::string NothingInPart(const PartOptions& options);

// Metrics as options name them, and as help texts list them: taken from the table of metric.h.

// "ghz,branch_miss_rate". Errors: InvalidArgument, one line that names what is known.
absl::StatusOr<std::vector<metric::Metric>> ParseMetrics(const std::string& keys);

// A line per metric that `is_listed`: its key, with `behind` for those that are no shares, and what
// it is.
std::string MetricLines(bool (*is_listed)(const metric::Info&), const std::string& behind = "");

// "residency, ipc, ...": the metrics that are columns of CSV and keys of JSON lines.
std::string RowMetrics();

}  // namespace vcpulse::tools

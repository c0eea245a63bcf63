#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "monitor/report/report.h"
#include "monitor/report/summary.h"

namespace vcpulse::report {

// Part of a recording, ns after its start, both ends inclusive.
struct Part {
  std::optional<int64_t> from_ns{};
  std::optional<int64_t> to_ns{};
};

// Reads that part of a timeline into `summary`, which must be empty and outlive the report; the
// start is the instant of the first record that has one. A file is sought in: chunks outside the
// part are not read. `path` "-" is standard input, read to its end. A tick belongs to the part that
// it was taken in; its delta reaches back to the tick before.
// Errors: those of timeline::ReadTimeline, and InvalidArgument for more than one recording in one
// file; all name the file.
absl::StatusOr<Report> ReadPart(const std::string& path, const Part& part, Summary& summary);

}  // namespace vcpulse::report

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "monitor/report/report.h"
#include "monitor/report/summary.h"

namespace vcpulse::report {

// Part of a recording, ns after its start, both ends inclusive; or all spans of a phase, each from
// a marker of that name to the next marker, whose instant is no longer part of it.
struct Part {
  std::optional<int64_t> from_ns{};
  std::optional<int64_t> to_ns{};
  std::optional<std::string> phase{};
};

// Reads that part of a timeline into `summary`, which must be empty and outlive the report; the
// start is the instant of the first record that has one. A file is sought in: chunks outside the
// part are not read. `path` "-" is standard input, read to its end. A tick belongs to the part that
// it was taken in; its delta reaches back to the tick before. A phase takes two readings.
// Errors: those of timeline::ReadTimeline; InvalidArgument for more than one recording in one file,
// for a phase that never came, and for one of standard input, which can be read once. All name the
// file.
absl::StatusOr<Report> ReadPart(const std::string& path, const Part& part, Summary& summary);

}  // namespace vcpulse::report

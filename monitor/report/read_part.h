#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "monitor/reading/part.h"
#include "monitor/report/report.h"
#include "monitor/report/strip.h"
#include "monitor/report/summary.h"

namespace vcpulse::report {

// Reads that part of a timeline into `summary`, which must be empty and outlive the report, and
// into `strips` unless that is null. Errors:
// those of reading::ReadPart; InvalidArgument for more than one recording in one file. All name the
// file.
absl::StatusOr<Report> ReadPart(const std::string& path, const reading::Part& part,
                                Summary& summary, Strips* strips = nullptr);

}  // namespace vcpulse::report

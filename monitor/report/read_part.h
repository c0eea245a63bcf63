#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "monitor/reading/part.h"
#include "monitor/report/report.h"
#include "monitor/report/summary.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::report {

// Reads that part of a timeline into `summary`, which must be empty and outlive the report, and
// hands each entry to `also` after that, where there is one. Errors: those of reading::ReadPart;
// InvalidArgument for more than one recording in one file; of `also`. All name the file.
absl::StatusOr<Report> ReadPart(const std::string& path, const reading::Part& part,
                                Summary& summary, const timeline::EntrySink& also = nullptr);

}  // namespace vcpulse::report

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "monitor/metric/interval.h"
#include "monitor/reading/part.h"
#include "monitor/report/report.h"
#include "monitor/report/summary.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::report {

// Reads that part of a timeline into `summary`, which must be empty and outlive the report. Hands
// each entry to `also` before that, where there is one, and the intervals that end with it to
// `also_intervals`. Errors: those of reading::ReadPart; InvalidArgument for more than one recording
// in one file; of both. All name the file.
absl::StatusOr<Report> ReadPart(const std::string& path, const reading::Part& part,
                                Summary& summary, const timeline::EntrySink& also = nullptr,
                                metric::IntervalReader::Sink also_intervals = metric::PassOver);

}  // namespace vcpulse::report

#include "monitor/report/read_part.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace vcpulse::report {

absl::StatusOr<Report> ReadPart(const std::string& path, const reading::Part& part,
                                Summary& summary, const timeline::EntrySink& also,
                                metric::IntervalReader::Sink also_intervals) {
  auto read = reading::ReadPart(path, part, [&](const timeline::Entry& entry) {
    absl::Status added = also ? also(entry) : absl::OkStatus();
    if (added.ok()) added = summary.Add(entry, also_intervals);
    if (added.ok()) return added;
    return absl::Status(added.code(),
                        absl::StrCat(path == "-" ? "standard input" : path, ": ", added.message()));
  });
  if (!read.ok()) return read.status();
  Report report{.summary = summary,
                .read = std::move(read->read),
                .start_mono_ns = read->start_mono_ns,
                .from_ns = part.from_ns,
                .to_ns = part.to_ns};
  if (part.phase) {
    report.phase = Report::Phase{
        .name = *part.phase, .spans = read->phase_spans, .length_ns = read->phase_length_ns};
  }
  return report;
}

}  // namespace vcpulse::report

#include "monitor/report/report.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"

namespace vcpulse::report {

std::optional<int64_t> Report::Start() const {
  return start_mono_ns ? start_mono_ns : summary.first_mono_ns();
}

double Report::SecondsAt(int64_t mono_ns) const {
  return ToSeconds(mono_ns - Start().value_or(mono_ns));
}

int64_t Report::DurationNs() const {
  if (phase) return phase->length_ns;
  if (!Start() || !summary.last_mono_ns()) return 0;
  return std::max<int64_t>(0, *summary.last_mono_ns() - *Start() - from_ns.value_or(0));
}

std::optional<int64_t> Report::StartRealtimeNs() const {
  // What was imported has no wall clock.
  if (!Start() || !summary.clock() || summary.clock()->realtime_ns() == 0) return std::nullopt;
  return summary.clock()->realtime_ns() + (*Start() - summary.clock()->mono_ns());
}

bool Report::IsImported() const {
  const std::optional<v1::Session>& session = summary.session();
  return session && session->host_name().empty() && session->kernel_release().empty();
}

bool Report::HasOwnCost() const {
  return !IsImported() && summary.own_cost().read_ns.Max().value_or(1) > 0;
}

std::optional<bool> Report::EndedInOrder() const {
  if (read.ended_in_order) return true;
  if (to_ns) return std::nullopt;
  return false;
}

uint64_t Report::DamagedBytes() const {
  uint64_t bytes = 0;
  for (const timeline::Damage& damage : read.damages) bytes += damage.bytes;
  return bytes;
}

std::optional<double> Report::CpuShare() const {
  if (IsPart() || !HasOwnCost() || !summary.end() || DurationNs() == 0) return std::nullopt;
  return static_cast<double>(summary.end()->cpu_ns()) / static_cast<double>(DurationNs());
}

namespace {

// A pipe gave all that it had.
bool CanBeReadAgain(const timeline::Input& input) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(input.path(), error);
  return !error && !input.IsStandardInput() &&
         (std::filesystem::is_regular_file(status) || std::filesystem::is_directory(status));
}

absl::Status ReadPhasesAgain(const timeline::Input& input, const reading::Part& part,
                             Summary& summary) {
  PhaseTotals phases = PhaseTotals::Knowing(summary.phases());
  metric::IntervalReader intervals;
  const auto read = reading::ReadPart(input, part, [&](const timeline::Entry& entry) {
    return intervals.Add(entry, [&](const metric::Interval& interval) {
      phases.Add(interval, reading::PlaceOf(std::get<timeline::TickEntry>(entry.record)));
      return absl::OkStatus();
    });
  });
  if (!read.ok()) return read.status();
  summary.SetPhases(std::move(phases));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Report> ReadPart(const timeline::Input& input, const reading::Part& part,
                                Summary& summary, const timeline::EntrySink& also,
                                metric::IntervalReader::Sink also_intervals) {
  auto read = reading::ReadPart(input, part, [&](const timeline::Entry& entry) {
    absl::Status added = also ? also(entry) : absl::OkStatus();
    if (added.ok()) added = summary.Add(entry, also_intervals);
    if (added.ok()) return added;
    return absl::Status(added.code(), absl::StrCat(input.Name(), ": ", added.message()));
  });
  if (!read.ok()) return read.status();
  if (summary.phases().CameLate() && CanBeReadAgain(input)) {
    absl::Status again = ReadPhasesAgain(input, part, summary);
    if (!again.ok()) return again;
  }
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

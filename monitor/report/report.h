#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "monitor/hotspots/symbols.h"
#include "monitor/metric/interval.h"
#include "monitor/reading/part.h"
#include "monitor/report/summary.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::report {

// Everything that a report is rendered from. The summary must outlive it.
struct Report {
  const Summary& summary;
  timeline::ReadReport read;  // what reading found: damage and loss
  // CLOCK_MONOTONIC; absent: the first instant that the summary saw.
  std::optional<int64_t> start_mono_ns{};
  // The part that was asked for, after the start.
  std::optional<int64_t> from_ns{};
  std::optional<int64_t> to_ns{};
  // Or the phase, and how long its spans are together.
  struct Phase {
    std::string name;
    uint64_t spans = 0;
    int64_t length_ns = 0;
  };
  std::optional<Phase> phase{};
  hotspots::GuestKernels symbols{};  // that name hot addresses

  bool IsPart() const { return from_ns || to_ns || phase; }
  // The recording's start, CLOCK_MONOTONIC. Nothing where no record had an instant.
  std::optional<int64_t> Start() const;
  // Seconds after the start. 0 where there is no start.
  double SecondsAt(int64_t mono_ns) const;
  // From the start, or from_ns, to the latest record; of a phase, its length.
  int64_t DurationNs() const;
  // Wall clock at the recording's start, ns since 1970. Nothing without a clock snapshot.
  std::optional<int64_t> StartRealtimeNs() const;
  // Whether the counts were not taken by vcpulse, so that it knows nothing of the host.
  bool IsImported() const;
  // Whether the times of the ticks are those of vcpulse's own work: reads that all have no length
  // were never made.
  bool HasOwnCost() const;
  // Whether the recording was ended and not killed. Nothing where `to` leaves that out.
  std::optional<bool> EndedInOrder() const;
  uint64_t DamagedBytes() const;
  // vcpulse's processor time as a share of one CPU. Nothing for a part, without a summary, or
  // where it took no sample.
  std::optional<double> CpuShare() const;
};

// Reads that part of a timeline into `summary`, which must be empty and outlive the report. Hands
// each entry to `also` before that, where there is one, and the intervals that end with it to
// `also_intervals`. Errors: those of reading::ReadPart; InvalidArgument for more than one recording
// in one file; of both. All name the file.
absl::StatusOr<Report> ReadPart(const timeline::Input& input, const reading::Part& part,
                                Summary& summary, const timeline::EntrySink& also = nullptr,
                                metric::IntervalReader::Sink also_intervals = metric::PassOver);

}  // namespace vcpulse::report

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/core/classify.h"
#include "monitor/import/table.h"
#include "monitor/profile/profile.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/writer.h"

namespace vcpulse::importing {

struct ImportOptions {
  // What residency is divided by: of ref_cycles, and of cycles.
  std::optional<double> tsc_hz;
  std::optional<double> max_hz;
  core::ClassifierChoice classifier = core::ClassifierChoice::kAuto;
  profile::Profile profile;
  timeline::StreamId stream_id{};
  std::string tool_version;
};

// What was imported.
struct ImportReport {
  uint64_t intervals = 0;     // rows that became part of the timeline
  uint64_t only_begin = 0;    // rows that only say when the next one's interval began
  uint64_t says_nothing = 0;  // rows left out: neither a count nor a time
  uint64_t vms = 0;
  uint64_t vcpus = 0;
  uint64_t ticks = 0;                      // instants
  uint64_t epochs = 0;                     // of all VMs
  std::vector<std::string> substitutions;  // what stands for absent times, each once
  // Rows with counts that no CPU makes: more cycles than at 10 GHz, more than 20 instructions each.
  uint64_t impossible = 0;
  uint64_t first_impossible = 0;  // its Row::number
};

// Writes the table as a timeline and flushes: a Session, the Profile, a ClockSnapshot where the
// rows know the wall clock, then sets and ticks in order of time, with verdicts by replay::Rejudge,
// at last a Summary. A timeline keeps cumulative values, so each epoch begins with a sample of
// zeros where its first intervals began.
//
// An epoch holds the vCPUs of one VM whose rows at one instant have the same cells. A new one
// begins where those cells, the vCPUs or their threads change, where the rows say so (kEpoch),
// where an interval does not begin where the vCPU's last one ended (by more than 1 % of it and more
// than 100 us), and where a sum would pass 2^64. So rows of different cells become epochs side by
// side, and what is absent never becomes 0.
//
// Errors: those of IntervalFinder; InvalidArgument where no row covers an interval;
// ResourceExhausted for more than 250,000 epochs; what the writer said.
absl::StatusOr<ImportReport> ImportTable(const Table& table, const ImportOptions& options,
                                         timeline::RecordWriter& writer);

// The same of a text of any length, read twice or more often: for what must be known of all rows,
// then for their ticks. At most 2 x `window` rows are in memory: a row may stand so many rows below
// those of a later time. Where they are further out of order the window grows, up to 2,000,000
// rows; OutOfRange beyond, with the row. All but the number of epochs is checked before the first
// record is written.
inline constexpr size_t kRowWindow = 32'768;
absl::StatusOr<ImportReport> ImportRows(RowReader& rows, const ImportOptions& options,
                                        timeline::RecordWriter& writer, size_t window = kRowWindow);

}  // namespace vcpulse::importing

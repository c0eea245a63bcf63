#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/entry.h"
#include "monitor/timeline/input.h"

namespace vcpulse::timeline {

// A region of the input that could not be used.
struct Damage {
  uint64_t offset = 0;  // in the file, bytes
  uint64_t bytes = 0;
  std::string reason;  // for people
};

// Records that were lost before the timeline was written, as it says itself: on their way to a
// collector. The numbers are of one stream, inclusive.
struct ToldLoss {
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  v1::LostRecords::Reason reason = v1::LostRecords::REASON_UNSPECIFIED;

  bool operator==(const ToldLoss&) const = default;
};

// What reading found, beside the records.
struct ReadReport {
  uint64_t chunks = 0;   // decoded
  uint64_t records = 0;  // handed over, context (Entry::sequence 0) not counted
  // Holes in the sequence numbers from 1 to the last chunk whose header was read, and records of
  // chunks with a good header and a damaged payload. Each stream counts for itself.
  uint64_t lost_records = 0;
  // Of lost_records, those before the first chunk. They may be in another part of the recording, or
  // nobody has them; when they began is not known.
  uint64_t lost_before_first = 0;
  std::vector<ToldLoss> told_losses;  // why some of lost_records are
  std::vector<Damage> damages;  // torn or damaged regions, skipped by looking for the next magic
  bool ended_in_order = false;  // the last record that was read is a Summary
  // Behind the last whole chunk there is damage, or only word of a loss: when the recording ended
  // is not known.
  bool lost_end = false;

  // Whether records may be missing.
  bool MayLackRecords() const { return lost_records > 0 || lost_end; }
};

// Part of a stream, CLOCK_MONOTONIC ns, inclusive. Chunks outside of it are not read (only their
// headers are); records of chunks that overlap are filtered by their instant (a tick's: when the
// sampling thread woke), except Session, VcpuSet, Profile and Summary records.
struct TimeRange {
  std::optional<int64_t> from_mono_ns;
  std::optional<int64_t> to_mono_ns;
};

// Receives the records in order, and each stream's context: its Session and the VcpuSet of each
// tick come before the tick in any case, with sequence 0 where their own record was lost or
// skipped; so does the clock snapshot of each chunk. The entry and all it points to is valid during
// the call. An error stops the reading and is returned.
using EntrySink = std::function<absl::Status(const Entry&)>;

// Reads a timeline file. Whatever is whole is handed over, the rest is counted. A damaged chunk is
// never handed over in part. Memory: one chunk. Works on a file that is still being written, and on
// several streams in one file (each chunk of another stream id than the one before starts afresh);
// chunks that repeat records of their stream are passed over and noted as damage.
// Errors, all naming the file: NotFound, PermissionDenied, ... for a file that cannot be opened or
// read; InvalidArgument for a directory without *.vpt or with those of several recordings, an empty
// file, or where no chunk at all could be recognised; Unimplemented for a version or feature of a
// later release; whatever the sink returned (as it is). Standard input is read whole chunks as
// they come.
absl::StatusOr<ReadReport> ReadTimeline(const Input& input, const EntrySink& sink,
                                        const TimeRange& range = {});

// The same over bytes in memory.
absl::StatusOr<ReadReport> ReadTimelineBytes(std::span<const uint8_t> bytes, const EntrySink& sink,
                                             const TimeRange& range = {});

}  // namespace vcpulse::timeline

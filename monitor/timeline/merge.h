#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/timeline/reader.h"
#include "monitor/timeline/writer.h"

namespace vcpulse::timeline {

// Sequence numbers of records, inclusive.
struct SequenceRange {
  uint64_t first = 0;
  uint64_t last = 0;

  bool operator==(const SequenceRange&) const = default;
};

// What merging found.
struct MergeReport {
  struct Part {
    std::string file;
    std::vector<Damage> damages;  // in the file; another part may hold what is lost there
  };

  std::vector<Part> parts;
  std::vector<std::string> empty;  // files and directories that were skipped, as they are empty
  uint64_t chunks = 0;             // written, each with records
  uint64_t repeated_chunks = 0;    // not written, as all of their records were written before
  uint64_t first_sequence = 0;     // of the first record that was written
  uint64_t last_sequence = 0;      // of the last one
  // Records behind the first one that no part has: how many, and where the first kMostHoles holes
  // are. Those at the end are known only where a part says that they were lost, or a
  // damaged chunk's header names them.
  static constexpr size_t kMostHoles = 3;
  uint64_t lost_records = 0;
  uint64_t holes = 0;
  std::vector<SequenceRange> first_holes;
  bool ended_in_order = false;  // the last record is a Summary
};

// Joins files that hold parts of one recording, in any order: gives its chunks to `sink`, each byte
// for byte as its part holds it, in the order of their sequence numbers. A chunk whose records were
// all given before is left out; one that holds others too is cut. A loss that a part tells of is
// given where no other part has these records. A directory stands for the timelines in it; what is
// empty is skipped, unless all of it is (InvalidArgument). Each file is read twice. Memory: one
// chunk for each part that overlaps another. Errors, naming the file: of opening and reading;
// InvalidArgument for what is not a regular file, is not a timeline, for a file of several
// recordings, and for parts of several ones, naming them; Unimplemented for a chunk of a later
// release; DataLoss where no record can be read; those of the sink as they are.
absl::StatusOr<MergeReport> MergeTimelines(std::span<const std::string> paths,
                                           const ByteSink& sink);

// A chunk that merging gives. The bytes are valid during the call that it is given to.
struct MergedChunk {
  struct Place {
    size_t part = 0;      // of MergeReport::parts
    uint64_t offset = 0;  // in its file
  };

  std::span<const uint8_t> bytes;
  std::optional<Place> place;  // where a part holds these bytes; nothing: they were made
};

// The same, for whoever wants to know where the chunks lie.
absl::StatusOr<MergeReport> MergeChunks(
    std::span<const std::string> paths,
    const std::function<absl::Status(const MergedChunk&)>& sink);

}  // namespace vcpulse::timeline

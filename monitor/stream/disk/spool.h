#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/stream/disk/files.h"
#include "monitor/timeline/chunk_header.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::stream {

// What an agent keeps until the collector has it: chunks of one or more streams, on disk within a
// bound, and in memory within another. Where it is full, the oldest chunks go, and what went is
// told as lost records. A chunk that the disk does not take (full, read-only) stays in memory
// alone.
//
// On disk: DIR/STREAM-ID/FIRST-SEQUENCE.vpt, segments of whole chunks in rising sequence, each a
// timeline that can be read by itself. A segment goes when all of it is acknowledged. One thread.
class Spool {
 public:
  struct Options {
    std::string directory;  // empty: in memory alone
    uint64_t max_disk_bytes = 256u << 20;
    uint64_t max_memory_bytes = 8u << 20;
    uint64_t segment_bytes = 0;  // 0: a 64th of max_disk_bytes, within 64 KiB to 4 MiB
  };

  // Takes in what lies in the directory, which is made where it is not there: whole chunks in order
  // are kept, a torn end is cut off, what is damaged counts as lost. Errors: FailedPrecondition
  // where another process uses the directory, else what the system said, naming it and what to do.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(Files& files, const Options& options);

  // Adds the next chunk of its stream; a stream that was not known begins with it. Never fails:
  // what has no room pushes out the oldest.
  void Add(const timeline::ChunkHeader& header, std::span<const uint8_t> chunk);
  // Records that never came as far as the spool, before the next chunk that is added.
  void AddLost(const timeline::StreamId& stream, const v1::LostRecords& lost);

  // The streams of which something is held, oldest first; the one that is still being added to
  // last.
  std::vector<timeline::StreamId> streams() const;
  struct Range {
    uint64_t first_sequence = 1;  // held from here on: a chunk's first, or next where none is held
    uint64_t next_sequence = 1;
  };
  Range range(const timeline::StreamId& stream) const;

  // What comes at `sequence` of the stream: the chunk that begins there, the records that are lost
  // from there on, or nothing yet. A chunk that cannot be read any more counts as lost.
  struct Item {
    bool is_lost = false;
    v1::LostRecords lost{};            // where it is
    timeline::ChunkHeader header{};    // else
    std::span<const uint8_t> bytes{};  // valid until the next call
  };
  std::optional<Item> At(const timeline::StreamId& stream, uint64_t sequence);

  // Records up to `durable` are the collector's: they go. A stream of which nothing is left, and
  // that is not the one being added to, goes altogether.
  void Acknowledge(const timeline::StreamId& stream, uint64_t durable);

  // Syncs what was written since the last call, so that it outlives a crash of the machine. Called
  // each few seconds.
  void Sync();

  struct Stats {
    uint64_t disk_bytes = 0;
    uint64_t memory_bytes = 0;  // of chunks that are in memory alone
    uint64_t chunks = 0;
    uint64_t lost_chunks = 0;  // dropped or unreadable, since Open
    uint64_t lost_records = 0;
  };
  Stats stats() const;
  // Why chunks are not written to disk now; OK where they are.
  const absl::Status& disk_status() const { return disk_status_; }

 private:
  struct Chunk;
  struct Stream;

  Spool(Files& files, Options options);
  // Private parts are the implementation's own affair.

  Files& files_;
  Options options_;
  absl::Status disk_status_;
};

}  // namespace vcpulse::stream

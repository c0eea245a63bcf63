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
// On disk: DIR/NUMBER-STREAMID/FIRST-SEQUENCE.vpt, segments of whole chunks in rising sequence,
// each a timeline that can be read by itself. NUMBER (10 digits) rises from stream to stream, so
// that the order of streams does not hang on a clock. A segment goes when all of it is
// acknowledged. Files of other names are left alone. One thread.
class Spool {
 public:
  struct Options {
    std::string directory;  // empty: in memory alone
    uint64_t max_disk_bytes = 256u << 20;
    uint64_t max_memory_bytes = 8u << 20;
    uint64_t segment_bytes = 0;  // 0: a 64th of max_disk_bytes, within 64 KiB to 4 MiB
    std::string boot_id;         // of this machine now; empty: it is not known
  };

  // Takes in what lies in the directory, which is made where it is not there: whole chunks in order
  // are kept, a torn end is cut off, what is damaged counts as lost. Errors: FailedPrecondition
  // where another process uses the directory; DataLoss where a file there cannot be read (it is not
  // touched); else what the system said. Each names what it is about and what to do.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(Files& files, const Options& options);

  ~Spool();

  // Adds the next chunk of its stream; a stream that was not known begins with it. Never fails:
  // what has no room pushes out the oldest.
  void Add(const timeline::ChunkHeader& header, std::span<const uint8_t> chunk);
  // Records that never came as far as the spool, before the next chunk that is added.
  void AddLost(const timeline::StreamId& stream, const v1::LostRecords& lost);

  // Whether the streams that Open found are all that was ever added to them: since then no machine
  // has crashed, and no disk failed. Else the last records may have gone out, and be gone here.
  bool found_all() const { return found_all_; }

  // What is held of `from`, and what is added to it later, belongs to `to` from now on, a new
  // stream, with the same sequence numbers; chunks are written anew. Where the disk is full that
  // pushes out the oldest ones.
  void Move(const timeline::StreamId& from, const timeline::StreamId& to);

  // The streams of which something is held (chunks, or losses to tell), oldest first; the one that
  // was added to last is there in any case, as the last one.
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
    uint64_t untold_records = 0;  // that are lost, and not acknowledged as such
  };
  Stats stats() const;
  // Why chunks are not written to disk now; OK where they are.
  const absl::Status& disk_status() const { return disk_status_; }

 private:
  struct Entry;
  struct Segment;
  class Stream;
  struct CachedChunk {
    timeline::StreamId stream{};
    uint64_t first_sequence = 0;
  };
  // Of all streams together.
  struct Held {
    uint64_t chunks = 0;
    uint64_t memory_bytes = 0;   // of chunks that are in memory, on disk or not
    uint64_t waiting_bytes = 0;  // of those that are not on disk
    uint64_t lost_chunks = 0;    // since Open
    uint64_t lost_records = 0;
    uint64_t untold_records = 0;  // of all entries that are lost
  };

  Spool(Files& files, Options options);

  // spool.cc
  Stream* Find(const timeline::StreamId& stream);
  const Stream* Find(const timeline::StreamId& stream) const;
  timeline::StreamId NowOf(const timeline::StreamId& stream) const;
  Stream& AddTo(const timeline::StreamId& stream, uint64_t first_sequence);
  std::optional<Item> ReadChunk(Stream& stream, Entry& entry);
  void KeepMemoryWithinBound();
  void ForgetIfEmpty(const timeline::StreamId& stream);
  bool IsCached(const CachedChunk& chunk);

  // spool_segments.cc
  void WriteWaiting();
  absl::Status Write(Stream& stream, uint64_t first_sequence);
  absl::Status MakeRoomOnDisk(uint64_t bytes);
  absl::Status BeginSegment(Stream& stream, uint64_t first_sequence);
  void LeaveSegment();
  absl::Status RemoveOldestSegment(Stream& stream);
  void RemoveAcknowledged(Stream& stream, uint64_t durable);
  void RemoveLeftOver();
  absl::Status SyncWritten();

  // spool_recovery.cc
  void TakeMark();
  void SetMark(const std::string& mark);
  void RemoveMark();
  absl::Status Recover();
  absl::Status RecoverFolder(const std::string& name, const timeline::StreamId& stream);
  absl::Status RecoverSegment(const std::string& folder, uint64_t name_sequence,
                              uint64_t begin_sequence, Stream** stream,
                              const timeline::StreamId& stream_id, bool* is_damaged);

  Files& files_;
  Options options_;
  absl::Status disk_status_;
  std::unique_ptr<DirectoryLock> lock_;
  std::deque<std::unique_ptr<Stream>> streams_;  // oldest first
  std::optional<timeline::StreamId> adding_to_;
  std::map<timeline::StreamId, timeline::StreamId> moved_;  // from each of these ids, where to
  Held held_;
  std::deque<CachedChunk> cached_;  // on disk and in memory, oldest first; some may have gone
  std::vector<uint8_t> read_;       // the chunk that At gave last

  uint64_t disk_bytes_ = 0;
  uint64_t next_folder_ = 1;
  uint64_t next_segment_ = 1;
  Stream* writing_to_ = nullptr;         // its last segment is the one that is written to
  std::unique_ptr<AppendFile> segment_;  // none: the next chunk begins one
  bool segment_unsynced_ = false;
  bool found_all_ = true;
  bool is_marked_ = false;  // all that was added is in the files, if no machine crashes
  std::vector<std::unique_ptr<AppendFile>> left_unsynced_;  // segments that were full
  std::vector<std::string> folders_unsynced_;
  std::vector<Segment> left_over_;  // that could not be removed
};

}  // namespace vcpulse::stream

#pragma once

// monitor/top: the model of `vcpulse top`, without a terminal. Chunks (live, of a file, from a
// collector) are kept in a store; a board is what a stretch of time holds per vCPU; the state is
// what the keys have made of the view; drawing makes cells of all three. Nothing here reads a
// clock or writes to a terminal: monitor/terminal does, and tools/vcpulse/top.cc joins them.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/follow/growing_file.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::top {

// Whose chunks they are.
struct Stream {
  timeline::StreamId id{};
  std::string host;  // the agent's name at its collector, else the session's host
  // What is added to CLOCK_MONOTONIC: its instants are then ns since 1970, so that streams of
  // several hosts share one axis. From the stream's first snapshot of the clocks, whatever the
  // clocks do later; 0 where it has none.
  int64_t ahead_ns = 0;
  bool has_realtime = false;
  int64_t interval_ns = 0;  // between ticks, as the session says

  // Where an instant of CLOCK_MONOTONIC lies on the axis. A damaged file may say anything: what is
  // given lies within 0 and 2^62 (the year 2116), so that nothing overflows that is made of two.
  int64_t OnAxis(int64_t mono_ns) const;
};

// One chunk of a store; times are of the common axis.
struct ChunkPlace {
  size_t stream = 0;  // in ChunkStore::streams
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint64_t bytes = 0;
};

struct TimeSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// The chunks of a view: a bounded number of them in memory, or the places of a file's. One thread.
class ChunkStore {
 public:
  struct Limits {
    uint64_t bytes = 256u << 20;
    int64_t age_ns = 600'000'000'000;  // before the newest
  };

  // In memory: what is beyond the limits is forgotten, the oldest first. An age is that before the
  // newest of the same stream.
  explicit ChunkStore(const Limits& limits) : limits_(limits) {}
  // Of a file: only headers are read here. Errors: those of opening and reading, naming the file;
  // InvalidArgument for a file that does not begin as a timeline, or has no whole chunk.
  static absl::StatusOr<ChunkStore> OpenFile(const std::string& path);

  // In memory: takes one whole chunk. `agent`: whose it is at a collector; empty: of this host.
  // Errors: those of decoding; then it is left out.
  // `now_ns`: this host's clock, ns since 1970; a new stream whose clock is ahead of it by more
  // than a minute is taken for one of now, so that it hides no other. 0: not known.
  absl::Status Add(const std::string& agent, std::span<const uint8_t> chunk, int64_t now_ns = 0);
  // Of a file: takes in what was appended since; of another file under its name all. Errors: those
  // of reading.
  absl::Status Refresh();

  // Chunks have numbers in the order in which they came; those of [first(), end()) are there.
  uint64_t first() const { return first_; }
  uint64_t end() const { return first_ + chunks_.size(); }
  const ChunkPlace& Place(uint64_t number) const { return chunks_[number - first_].place; }
  // Its bytes, valid until the next call. Errors: of reading the file.
  absl::StatusOr<std::span<const uint8_t>> Load(uint64_t number) const;
  // The stream's first chunk, though it was forgotten: it alone has the profile that the stream was
  // judged by. Valid until the next call. Errors: as of Load; NotFound where nothing of the stream
  // is held.
  absl::StatusOr<std::span<const uint8_t>> LoadFirst(size_t stream) const;
  // Whether that is one of [first(), end()).
  bool HoldsFirst(size_t stream) const { return first_chunks_[stream].number >= first_; }
  uint64_t FirstNumber(size_t stream) const { return first_chunks_[stream].number; }
  const std::vector<Stream>& streams() const { return streams_; }
  // From the beginning of the oldest to the end of the newest; nothing without a chunk.
  std::optional<TimeSpan> Span() const;

  bool IsOfFile() const { return file_.has_value(); }
  uint64_t held_bytes() const { return held_bytes_; }  // in memory
  uint64_t unreadable() const { return unreadable_; }  // chunks that were left out
  uint64_t damaged_bytes() const { return file_ ? file_->damaged_bytes() : 0; }

 private:
  struct Chunk {
    ChunkPlace place;
    uint64_t offset = 0;         // in the file
    std::vector<uint8_t> bytes;  // in memory
  };

  struct FirstChunk {
    uint64_t number = 0;
    Chunk chunk;
    uint64_t held = 0;  // chunks of the stream
    int64_t newest_end_ns = 0;
  };

  absl::StatusOr<std::span<const uint8_t>> Load(const Chunk& chunk) const;
  void Keep(Chunk chunk);
  // Of the stream that the header names; one that is new is read from the chunk.
  absl::StatusOr<size_t> StreamOf(const std::string& agent, const timeline::ChunkHeader& header,
                                  absl::FunctionRef<absl::StatusOr<std::vector<uint8_t>>()> bytes);
  ChunkPlace PlaceOf(size_t stream, const timeline::ChunkHeader& header) const;
  void Forget();

  Limits limits_;
  std::optional<follow::GrowingFile> file_;
  std::vector<Stream> streams_;
  std::vector<FirstChunk> first_chunks_;  // of each stream
  std::map<std::pair<std::string, timeline::StreamId>, size_t> by_id_;
  std::deque<Chunk> chunks_;
  uint64_t first_ = 0;
  uint64_t held_bytes_ = 0;
  uint64_t unreadable_ = 0;
  uint64_t replaced_ = 0;                // as of the file, when its chunks were taken in
  mutable std::vector<uint8_t> loaded_;  // of the file
};

// The records of one whole chunk in order; first, with sequence 0, its context: session and sets.
// Errors: those of decoding and of `sink`.
absl::Status ForEachEntry(std::span<const uint8_t> chunk,
                          absl::FunctionRef<absl::Status(const timeline::Entry&)> sink);

}  // namespace vcpulse::top

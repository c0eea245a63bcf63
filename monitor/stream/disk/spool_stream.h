#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "monitor/stream/disk/spool.h"

namespace vcpulse::stream {

// What `DIR/.written` says: the boot in which all that was added is in the files; or this, where it
// is synced as well and outlives that boot.
inline constexpr char kAllSynced[] = "all synced";

// What the spool knows of some records of a stream: one chunk, or a span that is lost.
struct Spool::Entry {
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  int64_t first_mono_ns = 0;
  int64_t last_mono_ns = 0;
  bool is_lost = false;
  v1::LostRecords::Reason reason = v1::LostRecords::REASON_UNSPECIFIED;  // where it is
  // Of a chunk:
  uint32_t bytes = 0;
  uint64_t segment = 0;  // that it lies in; 0: in memory alone
  uint64_t offset = 0;
  std::vector<uint8_t> memory{};  // empty: on disk alone

  uint64_t records() const { return last_sequence - first_sequence + 1; }
};

struct Spool::Segment {
  uint64_t id = 0;
  std::string path;
  uint64_t bytes = 0;          // of the file
  uint64_t last_sequence = 0;  // in it
};

// The chunks and losses of one stream, without a gap between them, and the segments that hold them.
class Spool::Stream {
 public:
  Stream(const timeline::StreamId& stream_id, uint64_t first_sequence, Held* all_held)
      : id(stream_id), next_sequence(first_sequence), held(all_held) {}

  // The entry that covers `sequence`; none where it is not held.
  Entry* Find(uint64_t sequence);
  // Appends what begins at next_sequence or behind it; what is skipped is lost for `reason`.
  void Push(Entry entry, v1::LostRecords::Reason reason);
  // The chunks among the entries that `is_meant` says yes to are lost from now on.
  template <typename IsMeant>
  void Lose(uint64_t from, uint64_t to, v1::LostRecords::Reason reason, const IsMeant& is_meant);
  // Nothing up to `durable` is held any more.
  void Forget(uint64_t durable);
  void FreeMemory(Entry& entry);
  void NoteOnDisk(Entry& entry, uint64_t segment, uint64_t offset);

  const timeline::StreamId id;
  std::string folder;              // empty: none yet
  std::deque<Entry> entries;       // by sequence
  uint64_t next_sequence;          // behind all of them
  std::deque<uint64_t> waiting;    // first sequences of the chunks that are in memory alone
  std::deque<Segment> segments{};  // by sequence
  Held* const held;                // of all streams

 private:
  size_t IndexOf(uint64_t sequence) const;
  void ReleaseChunk(Entry& entry);
  void MergeLosses(size_t from, size_t to);
};

template <typename IsMeant>
void Spool::Stream::Lose(uint64_t from, uint64_t to, v1::LostRecords::Reason reason,
                         const IsMeant& is_meant) {
  const size_t begin = IndexOf(from);
  size_t i = begin;
  for (; i < entries.size() && entries[i].first_sequence <= to; ++i) {
    Entry& entry = entries[i];
    if (entry.is_lost || !is_meant(entry)) continue;
    ++held->lost_chunks;
    held->lost_records += entry.records();
    held->untold_records += entry.records();
    ReleaseChunk(entry);
    entry.is_lost = true;
    entry.reason = reason;
  }
  MergeLosses(begin == 0 ? 0 : begin - 1, i + 1);
}

}  // namespace vcpulse::stream

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/export/exporter.h"
#include "monitor/export/jsonl.h"
#include "monitor/follow/replay_view.h"
#include "monitor/timeline/chunk_decoder.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::follow {

// Whose chunk it is, as the printer says it.
struct ChunkOwner {
  std::optional<std::string> agent;  // nothing: of a file, which does not say
  bool say_agent = false;            // there may be others: text lines begin with it
  bool is_live = false;  // of a collector, which sends each once: what is left out was missed
};

// Prints the records of chunks, of any number of streams, as lines of text or JSON. Takes the
// chunks of each stream in order. One thread.
class ChunkPrinter {
 public:
  enum class Format {
    kText,   // as `vcpulse replay` does, with the time of day
    kJsonl,  // the rows of `vcpulse export --format jsonl`, with "agent" as the first key
  };
  // Takes whole lines. An error ends the printing.
  using Print = std::function<absl::Status(std::string_view)>;

  // Takes a line for people.
  using Say = std::function<void(const std::string&)>;

  ChunkPrinter(Format format, Print print, Say say)
      : format_(format), print_(std::move(print)), say_(std::move(say)) {}

  // Prints the records of a whole chunk, header and payload, but for those before the sequence
  // number `from`, and those that it has had: they are what is known already. What a live stream
  // leaves out is told as missed. What is no good chunk, or one of a later release, is passed over
  // and counted, and the first of each stream is said: one agent's rubbish must not end what is
  // printed of the others. Errors: those of `print`.
  absl::Status Take(const ChunkOwner& owner, std::span<const uint8_t> chunk, uint64_t from = 0);

  // Samples that could not be used, as no vCPU set fits them.
  uint64_t unusable_ticks() const { return unusable_ticks_; }
  // Of live streams that were seen before.
  uint64_t missed_records() const { return missed_records_; }
  // Chunks that were passed over.
  uint64_t unreadable_chunks() const { return unreadable_chunks_; }

 private:
  // What is known of one stream.
  struct Stream {
    explicit Stream(ChunkPrinter& printer);

    exporting::Clocks clocks;
    std::optional<int64_t> start_ns;  // where no clock tells the time of day
    ReplayView view;
    exporting::JsonlExport rows;
    uint64_t next_sequence = 0;  // what comes before it was printed already
    bool has_session = false;
    bool has_ended = false;
    std::set<std::pair<uint32_t, uint32_t>> sets{};
  };

  using StreamKey = std::pair<std::string, timeline::StreamId>;  // agent, stream
  // The records that a chunk brings, or tells as lost.
  struct Span {
    uint64_t first = 0;
    uint64_t last = 0;
  };

  std::optional<Span> SpanOf(const timeline::ChunkHeader& header) const;
  uint64_t NextSequence(const StreamKey& key) const;
  Stream& StreamOf(const StreamKey& key);
  void NoteEnd(const StreamKey& key, uint64_t next_sequence);
  void NoteMissed(const std::string& agent, const Span& missed);
  absl::StatusOr<timeline::ChunkHeader> OpenChunk(std::span<const uint8_t> chunk);
  void PassOver(const StreamKey& key, const absl::Status& why);
  std::string Stamp(Stream& stream, int64_t mono_ns) const;
  absl::Status TakeContext(const v1::ChunkPayload& context, Stream& stream);
  absl::Status TakeEntry(const timeline::Entry& entry, bool print, Stream& stream);
  absl::Status TakeText(const timeline::Entry& entry, bool print, Stream& stream);
  void TakeLost(const v1::LostRecords& lost, Stream& stream);
  void AddLine(std::string_view line);
  void AddRows(std::string_view rows);

  const Format format_;
  const Print print_;
  const Say say_;
  timeline::ChunkDecoder decoder_;
  std::map<StreamKey, std::unique_ptr<Stream>> streams_;
  // The next sequence of streams that have ended, while there are not too many.
  std::map<StreamKey, uint64_t> ended_;
  std::deque<StreamKey> oldest_ended_;
  std::set<StreamKey> said_;  // of which an unreadable chunk was said
  std::string prefix_;        // of the lines of the chunk that is being taken
  std::string text_;          // its lines
  uint64_t unusable_ticks_ = 0;
  uint64_t unreadable_chunks_ = 0;
  uint64_t missed_records_ = 0;
};

}  // namespace vcpulse::follow

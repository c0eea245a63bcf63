#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "monitor/timeline/byte_source.h"
#include "monitor/timeline/chunk_decoder.h"
#include "monitor/timeline/chunk_scanner.h"
#include "monitor/timeline/folder_source.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::timeline {
namespace {

using Found = ChunkScanner::Found;
using VmEpoch = std::pair<uint32_t, uint32_t>;

// The instant by which a record is chosen; nothing for those that are handed over whatever the
// range.
std::optional<int64_t> ChosenBy(const Entry& entry) {
  if (std::holds_alternative<v1::VcpuSet>(entry.record)) return std::nullopt;
  return InstantOf(entry);
}

class Reading {
 public:
  Reading(ByteSource* source, const EntrySink& sink, const TimeRange& range)
      : sink_(sink),
        from_(range.from_mono_ns.value_or(std::numeric_limits<int64_t>::min())),
        to_(range.to_mono_ns.value_or(std::numeric_limits<int64_t>::max())),
        scanner_(source, &report_.damages) {}

  // Reads all there is. Errors of the sink and of the source.
  absl::Status Run();

  const ChunkScanner& scanner() const { return scanner_; }
  ReadReport& report() { return report_; }
  bool sink_failed() const { return sink_failed_; }

 private:
  // What is known of the stream that the last chunk belongs to.
  struct Stream {
    StreamId id{};
    uint64_t next_sequence = 0;
    bool has_begun = false;  // a chunk with records, or one that tells of a loss, was found
    bool has_session = false;
    std::set<VmEpoch> sets{};  // that were handed over
  };

  bool Account(const Found& chunk);
  absl::Status ReadChunk(const Found& chunk);
  absl::Status GiveContext();
  absl::Status GiveRecords();
  absl::Status Give(const Entry& entry);
  void NoteDamage(const Found& chunk, std::string reason);
  void NoteWhole();
  void NoteLost(const Found& chunk);
  void NoteHoleBefore(uint64_t sequence);
  void NoteTold(const v1::LostRecords& lost);

  const EntrySink& sink_;
  const int64_t from_;
  const int64_t to_;
  ReadReport report_;
  ChunkScanner scanner_;
  ChunkDecoder decoder_;
  std::optional<Stream> stream_;
  size_t damages_before_end_ = 0;  // when the last whole chunk was found
  bool sink_failed_ = false;
};

absl::Status Reading::Run() {
  while (true) {
    absl::StatusOr<std::optional<Found>> found = scanner_.Next();
    if (!found.ok()) return found.status();
    if (!found->has_value()) {
      report_.lost_end = report_.lost_end ||
                         (!report_.ended_in_order && report_.damages.size() > damages_before_end_);
      return absl::OkStatus();
    }
    const Found& chunk = **found;
    const bool is_new = Account(chunk);
    const bool outside = chunk.header.last_mono_ns < from_ || chunk.header.first_mono_ns > to_;
    if (!is_new || outside) {
      const absl::StatusOr<bool> whole = scanner_.Skip(chunk);
      if (!whole.ok()) return whole.status();
      if (!is_new && *whole) NoteDamage(chunk, "chunk repeats records that were read before");
      if (is_new && !*whole) NoteLost(chunk);
      if (*whole) NoteWhole();
      continue;
    }
    if (absl::Status status = ReadChunk(chunk); !status.ok()) return status;
  }
}

// Follows the sequence numbers. False for a chunk that goes back in them.
bool Reading::Account(const Found& chunk) {
  const ChunkHeader& header = chunk.header;
  if (!stream_ || stream_->id != header.stream_id) {
    // A chunk that begins with 0 is damaged, not repeated.
    stream_ = Stream{.id = header.stream_id,
                     .next_sequence = std::min<uint64_t>(header.first_sequence, 1)};
  }
  if (header.first_sequence > header.last_sequence) return true;  // context alone
  if (header.first_sequence < stream_->next_sequence) return false;
  NoteHoleBefore(header.first_sequence);
  stream_->next_sequence = header.last_sequence + 1;
  return true;
}

absl::Status Reading::ReadChunk(const Found& chunk) {
  const auto payload = scanner_.ReadPayload(chunk);
  if (!payload.ok()) return payload.status();
  if (!payload->has_value()) {
    NoteLost(chunk);
    return absl::OkStatus();
  }
  if (absl::Status status = decoder_.Open(chunk.header, **payload); !status.ok()) {
    NoteDamage(chunk, std::string(status.message()));
    NoteLost(chunk);
    return absl::OkStatus();
  }
  ++report_.chunks;
  NoteWhole();
  if (chunk.header.first_sequence > chunk.header.last_sequence && decoder_.context().has_lost()) {
    NoteTold(decoder_.context().lost());
  }
  if (absl::Status status = GiveContext(); !status.ok()) return status;
  return GiveRecords();
}

// What the chunk's records need and whose own records did not come, or not from this chunk.
absl::Status Reading::GiveContext() {
  const v1::ChunkPayload& context = decoder_.context();
  bool session_inside = false;
  std::set<VmEpoch> sets_inside;
  for (const v1::TimelineRecord& record : context.records()) {
    if (record.has_session()) session_inside = true;
    if (record.has_vcpu_set()) {
      sets_inside.emplace(record.vcpu_set().vm(), record.vcpu_set().epoch());
    }
  }
  if (context.has_session() && !stream_->has_session && !session_inside) {
    if (absl::Status status = Give({.record = context.session()}); !status.ok()) return status;
  }
  if (context.has_clock()) {
    if (absl::Status status = Give({.record = context.clock()}); !status.ok()) return status;
  }
  for (const v1::VcpuSet& set : context.vcpu_sets()) {
    const VmEpoch key(set.vm(), set.epoch());
    if (stream_->sets.contains(key) || sets_inside.contains(key)) continue;
    if (absl::Status status = Give({.record = set}); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Reading::GiveRecords() {
  while (const Entry* entry = decoder_.Next()) {
    const std::optional<int64_t> instant = ChosenBy(*entry);
    if (instant && (*instant < from_ || *instant > to_)) continue;
    ++report_.records;
    report_.ended_in_order = std::holds_alternative<v1::Summary>(entry->record);
    if (absl::Status status = Give(*entry); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Reading::Give(const Entry& entry) {
  if (std::holds_alternative<v1::Session>(entry.record)) stream_->has_session = true;
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    stream_->sets.emplace(set->vm(), set->epoch());
  }
  absl::Status status = sink_(entry);
  sink_failed_ = !status.ok();
  return status;
}

// Of a chunk that lies whole in the file and is passed over.
void Reading::NoteDamage(const Found& chunk, std::string reason) {
  report_.damages.push_back(
      {.offset = chunk.offset, .bytes = chunk.end() - chunk.offset, .reason = std::move(reason)});
}

// What was damaged before is not at the end.
void Reading::NoteWhole() {
  report_.lost_end = false;
  damages_before_end_ = report_.damages.size();
}

void Reading::NoteLost(const Found& chunk) {
  report_.ended_in_order = false;
  report_.lost_end = true;
  if (chunk.header.first_sequence > chunk.header.last_sequence) return;
  report_.lost_records += chunk.header.last_sequence - chunk.header.first_sequence + 1;
}

// `sequence` is what was found next of the stream.
void Reading::NoteHoleBefore(uint64_t sequence) {
  const uint64_t missing = sequence - std::min(sequence, stream_->next_sequence);
  report_.lost_records += missing;
  if (!std::exchange(stream_->has_begun, true)) report_.lost_before_first += missing;
}

// A hole whose reason is known is counted here, so that the next chunk finds none.
void Reading::NoteTold(const v1::LostRecords& lost) {
  const uint64_t next = stream_->next_sequence;
  const uint64_t last = lost.last_sequence();
  if (lost.first_sequence() == 0 || lost.first_sequence() > last || last < next ||
      last == std::numeric_limits<uint64_t>::max()) {
    return;
  }
  report_.ended_in_order = false;
  report_.lost_end = true;
  const uint64_t first = std::max(lost.first_sequence(), next);
  NoteHoleBefore(first);
  report_.lost_records += last - first + 1;
  report_.told_losses.push_back(
      {.first_sequence = first, .last_sequence = last, .reason = lost.reason()});
  stream_->next_sequence = last + 1;
}

absl::StatusOr<ReadReport> ReadAll(ByteSource* source, const std::string& name,
                                   const EntrySink& sink, const TimeRange& range) {
  uint8_t first = 0;
  const absl::StatusOr<size_t> there = source->ReadAt(0, std::span(&first, 1));
  if (!there.ok()) return there.status();
  if (*there == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is empty: no timeline was written to it"));
  }
  Reading reading(source, sink, range);
  absl::Status status = reading.Run();
  if (!status.ok()) {
    if (reading.sink_failed() || !absl::IsUnimplemented(status)) return status;
    return absl::UnimplementedError(absl::StrCat(name, ": ", status.message()));
  }
  if (!reading.scanner().recognised()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is not a vcpulse timeline (no chunk of one was found in it)"));
  }
  const std::vector<Damage> skipped = source->Skipped();
  ReadReport& report = reading.report();
  report.damages.insert(report.damages.end(), skipped.begin(), skipped.end());
  // Damage in one of several parts may have been their end, whether or not another part held it.
  report.lost_end = report.lost_end || (!report.ended_in_order && !skipped.empty());
  return std::move(report);
}

}  // namespace

absl::StatusOr<ReadReport> ReadTimeline(const Input& input, const EntrySink& sink,
                                        const TimeRange& range) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source = input.Open();
  if (!source.ok()) return source.status();
  std::error_code unknown;
  const bool is_one_path = !input.IsJoined() && !input.IsStandardInput();
  if (is_one_path && std::filesystem::is_directory(input.path(), unknown)) {
    if (absl::Status one = CheckOneRecording(input.path()); !one.ok()) return one;
  }
  return ReadAll(source->get(), input.Name(), sink, range);
}

absl::StatusOr<ReadReport> ReadTimelineBytes(std::span<const uint8_t> bytes, const EntrySink& sink,
                                             const TimeRange& range) {
  const auto source = NewMemorySource(bytes);
  return ReadAll(source.get(), "the input", sink, range);
}

}  // namespace vcpulse::timeline

#include "monitor/stream/disk/spool.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/stream/disk/spool_stream.h"

namespace vcpulse::stream {
namespace {

constexpr uint64_t kSmallestSegment = 64u << 10;
constexpr uint64_t kLargestSegment = 4u << 20;
constexpr uint64_t kSegments = 64;
constexpr uint64_t kFewestSegments = 4;  // so that a drop costs a part of the spool alone
constexpr uint64_t kLastSequence = std::numeric_limits<uint64_t>::max() - 1;

Spool::Options WithSegments(Spool::Options options) {
  if (options.segment_bytes == 0) {
    options.segment_bytes =
        std::clamp(options.max_disk_bytes / kSegments, kSmallestSegment, kLargestSegment);
  }
  options.segment_bytes = std::min(options.segment_bytes, options.max_disk_bytes / kFewestSegments);
  return options;
}

}  // namespace

Spool::Spool(Files& files, Options options)
    : files_(files), options_(WithSegments(std::move(options))) {}

Spool::~Spool() {
  if (is_marked_ && SyncWritten().ok()) SetMark(kAllSynced);
  for (const auto& stream : streams_) {
    if (!stream->folder.empty() && stream->segments.empty()) {
      static_cast<void>(files_.RemoveDirectory(stream->folder));  // else the next Open does
    }
  }
}

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(Files& files, const Options& options) {
  std::unique_ptr<Spool> spool(new Spool(files, options));
  if (options.directory.empty()) return spool;
  const auto in_words = [&](const absl::Status& status) {
    // DataLoss: of one file there, and it says what to do.
    return absl::Status(
        status.code(),
        absl::StrCat(
            "the spool in ", options.directory, ": ", status.message(),
            absl::IsDataLoss(status) ? "" : " (it needs a directory of its own to write to)"));
  };
  if (absl::Status status = files.MakeDirectories(options.directory); !status.ok()) {
    return in_words(status);
  }
  if (absl::Status status = files.CheckPrivate(options.directory); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat("the spool directory ", status.message()));
  }
  auto lock = files.Lock(options.directory);
  if (absl::IsFailedPrecondition(lock.status())) return lock.status();
  if (!lock.ok()) return in_words(lock.status());
  spool->lock_ = *std::move(lock);
  if (absl::Status status = spool->Recover(); !status.ok()) return in_words(status);
  spool->TakeMark();
  return spool;
}

void Spool::Add(const timeline::ChunkHeader& added, std::span<const uint8_t> bytes) {
  timeline::ChunkHeader header = added;
  header.stream_id = NowOf(added.stream_id);
  std::vector<uint8_t> chunk(bytes.begin(), bytes.end());
  if (header.stream_id != added.stream_id) {
    const auto head = timeline::EncodeChunkHeader(header);
    chunk.erase(chunk.begin(), chunk.begin() + added.header_bytes);
    chunk.insert(chunk.begin(), head.begin(), head.end());
  }
  if (header.first_sequence > header.last_sequence || header.last_sequence > kLastSequence) return;
  Stream& stream = AddTo(header.stream_id, header.first_sequence);
  // A recording that is sent once more.
  if (header.last_sequence < stream.next_sequence) return;
  if (header.first_sequence < stream.next_sequence) {
    stream.Push({.first_sequence = stream.next_sequence,
                 .last_sequence = header.last_sequence,
                 .is_lost = true,
                 .reason = v1::LostRecords::REASON_NOT_HELD},
                v1::LostRecords::REASON_NOT_HELD);
    ++held_.lost_chunks;
    return;
  }
  stream.Push({.first_sequence = header.first_sequence,
               .last_sequence = header.last_sequence,
               .first_mono_ns = header.first_mono_ns,
               .last_mono_ns = header.last_mono_ns,
               .bytes = static_cast<uint32_t>(chunk.size()),
               .memory = std::move(chunk)},
              v1::LostRecords::REASON_NOT_HELD);
  WriteWaiting();
  KeepMemoryWithinBound();
}

void Spool::AddLost(const timeline::StreamId& stream_id, const v1::LostRecords& lost) {
  if (lost.last_sequence() > kLastSequence) return;
  Stream& stream = AddTo(NowOf(stream_id), std::max<uint64_t>(lost.first_sequence(), 1));
  const uint64_t first = std::max(lost.first_sequence(), stream.next_sequence);
  if (first > lost.last_sequence()) return;
  stream.Push({.first_sequence = first,
               .last_sequence = lost.last_sequence(),
               .first_mono_ns = lost.first_mono_ns(),
               .last_mono_ns = lost.last_mono_ns(),
               .is_lost = true,
               .reason = lost.reason()},
              v1::LostRecords::REASON_NOT_HELD);
}

void Spool::Move(const timeline::StreamId& from, const timeline::StreamId& to) {
  const Stream* const stream = Find(from);
  for (auto& [old, now] : moved_) {
    if (now == from) now = to;
  }
  moved_[from] = to;
  if (stream == nullptr) return;
  const uint64_t end = stream->next_sequence;
  uint64_t next = stream->entries.empty() ? end : stream->entries.front().first_sequence;
  AddTo(to, next);
  std::vector<uint8_t> chunk;
  while (next < end) {
    auto item = At(from, next);
    if (!item) {  // it cannot be read now, and there is no later
      const Entry entry = *Find(from)->Find(next);
      Find(from)->Lose(entry.first_sequence, entry.last_sequence,
                       v1::LostRecords::REASON_SPOOL_DAMAGED, [](const Entry&) { return true; });
      continue;
    }
    if (item->is_lost) {
      next = item->lost.last_sequence() + 1;
      AddLost(to, item->lost);
    } else {
      next = item->header.last_sequence + 1;
      chunk.assign(item->bytes.begin(), item->bytes.end());
      Add(item->header, chunk);
    }
    Acknowledge(from, next - 1);
  }
}

std::vector<timeline::StreamId> Spool::streams() const {
  std::vector<timeline::StreamId> ids;
  ids.reserve(streams_.size());
  for (const auto& stream : streams_) ids.push_back(stream->id);
  return ids;
}

Spool::Range Spool::range(const timeline::StreamId& stream_id) const {
  const Stream* const stream = Find(stream_id);
  if (stream == nullptr) return {};
  const auto chunk =
      std::ranges::find_if(stream->entries, [](const Entry& entry) { return !entry.is_lost; });
  return {.first_sequence =
              chunk == stream->entries.end() ? stream->next_sequence : chunk->first_sequence,
          .next_sequence = stream->next_sequence};
}

std::optional<Spool::Item> Spool::At(const timeline::StreamId& stream_id, uint64_t sequence) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr || sequence >= stream->next_sequence) return std::nullopt;
  Entry* entry = stream->Find(sequence);
  if (entry != nullptr && !entry->is_lost && entry->first_sequence == sequence) {
    if (auto item = ReadChunk(*stream, *entry)) return item;
    entry = stream->Find(sequence);
    if (!entry->is_lost) return std::nullopt;  // it may be readable later
  }
  Item item{.is_lost = true};
  item.lost.set_first_sequence(sequence);
  item.lost.set_reason(v1::LostRecords::REASON_NOT_HELD);
  if (entry == nullptr) {
    item.lost.set_last_sequence(
        (stream->entries.empty() ? stream->next_sequence : stream->entries.front().first_sequence) -
        1);
    return item;
  }
  item.lost.set_last_sequence(entry->last_sequence);
  item.lost.set_first_mono_ns(entry->first_mono_ns);
  item.lost.set_last_mono_ns(entry->last_mono_ns);
  // Else the middle of a chunk, which cannot be had alone.
  if (entry->is_lost) item.lost.set_reason(entry->reason);
  return item;
}

// Nothing where the chunk cannot be read: it is lost then, unless that may pass.
std::optional<Spool::Item> Spool::ReadChunk(Stream& stream, Entry& entry) {
  std::span<const uint8_t> bytes = entry.memory;
  bool is_whole = true;
  if (bytes.empty()) {
    const auto segment = std::ranges::find(stream.segments, entry.segment, &Segment::id);
    read_.resize(entry.bytes);
    const auto got = files_.ReadAt(segment->path, entry.offset, read_);
    if (absl::IsResourceExhausted(got.status())) return std::nullopt;  // descriptors, memory
    is_whole = got.ok() && *got == read_.size();
    bytes = read_;
  }
  const auto header = timeline::DecodeChunkHeader(bytes);
  if (is_whole && header.ok() && header->stream_id == stream.id &&
      header->first_sequence == entry.first_sequence &&
      header->last_sequence == entry.last_sequence &&
      header->header_bytes + uint64_t{header->payload_bytes} == bytes.size() &&
      timeline::Crc32c(bytes.subspan(header->header_bytes)) == header->payload_crc) {
    return Item{.header = *header, .bytes = bytes};
  }
  stream.Lose(entry.first_sequence, entry.last_sequence, v1::LostRecords::REASON_SPOOL_DAMAGED,
              [](const Entry&) { return true; });
  return std::nullopt;
}

void Spool::Acknowledge(const timeline::StreamId& stream_id, uint64_t durable) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr) return;
  durable = std::min(durable, kLastSequence);
  stream->Forget(durable);
  RemoveAcknowledged(*stream, durable);
  if (cached_.size() > 2 * held_.chunks + kSegments) {
    std::erase_if(cached_, [this](const CachedChunk& chunk) { return !IsCached(chunk); });
  }
  ForgetIfEmpty(stream_id);
}

Spool::Stats Spool::stats() const {
  return {.disk_bytes = disk_bytes_,
          .memory_bytes = held_.waiting_bytes,
          .chunks = held_.chunks,
          .lost_chunks = held_.lost_chunks,
          .lost_records = held_.lost_records,
          .untold_records = held_.untold_records};
}

Spool::Stream* Spool::Find(const timeline::StreamId& stream_id) {
  return const_cast<Stream*>(std::as_const(*this).Find(stream_id));
}

const Spool::Stream* Spool::Find(const timeline::StreamId& stream_id) const {
  const auto found =
      std::ranges::find_if(streams_, [&](const auto& stream) { return stream->id == stream_id; });
  return found == streams_.end() ? nullptr : found->get();
}

timeline::StreamId Spool::NowOf(const timeline::StreamId& stream) const {
  const auto moved = moved_.find(stream);
  return moved == moved_.end() ? stream : moved->second;
}

// The stream, made where it is new, as the one that is added to.
Spool::Stream& Spool::AddTo(const timeline::StreamId& stream_id, uint64_t first_sequence) {
  if (adding_to_ == stream_id) return *streams_.back();
  const auto before = std::exchange(adding_to_, stream_id);
  if (before) ForgetIfEmpty(*before);
  const auto found =
      std::ranges::find_if(streams_, [&](const auto& stream) { return stream->id == stream_id; });
  if (found == streams_.end()) {
    streams_.push_back(std::make_unique<Stream>(stream_id, first_sequence, &held_));
  } else {
    std::rotate(found, found + 1, streams_.end());
  }
  return *streams_.back();
}

void Spool::ForgetIfEmpty(const timeline::StreamId& stream_id) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr || !stream->entries.empty() || adding_to_ == stream_id) return;
  if (writing_to_ == stream) LeaveSegment();
  if (!stream->folder.empty()) {
    static_cast<void>(files_.RemoveDirectory(stream->folder));  // it may hold files of others
  }
  std::erase_if(streams_, [&](const auto& each) { return each.get() == stream; });
}

bool Spool::IsCached(const CachedChunk& chunk) {
  Stream* const stream = Find(chunk.stream);
  const Entry* const entry = stream == nullptr ? nullptr : stream->Find(chunk.first_sequence);
  return entry != nullptr && entry->first_sequence == chunk.first_sequence && entry->segment != 0 &&
         !entry->memory.empty();
}

// Copies of what is on disk go first, then the oldest chunks that are in memory alone.
void Spool::KeepMemoryWithinBound() {
  while (held_.memory_bytes > options_.max_memory_bytes && !cached_.empty()) {
    const CachedChunk oldest = cached_.front();
    cached_.pop_front();
    if (!IsCached(oldest)) continue;
    Stream* const stream = Find(oldest.stream);
    stream->FreeMemory(*stream->Find(oldest.first_sequence));
  }
  for (const auto& stream : streams_) {
    while (held_.memory_bytes > options_.max_memory_bytes && !stream->waiting.empty()) {
      const uint64_t first = stream->waiting.front();
      stream->waiting.pop_front();
      stream->Lose(first, first, v1::LostRecords::REASON_SPOOL_FULL,
                   [](const Entry&) { return true; });
    }
  }
}

}  // namespace vcpulse::stream

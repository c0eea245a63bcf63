#include "monitor/top/chunk_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/export/exporter.h"
#include "monitor/timeline/chunk_decoder.h"

namespace vcpulse::top {
namespace {

constexpr int64_t kMostAhead_ns = 60'000'000'000;
constexpr int64_t kLongestInterval_ns = 3'600'000'000'000;  // of any recording

// Opens a whole chunk in `decoder`.
absl::Status Open(std::span<const uint8_t> chunk, timeline::ChunkDecoder& decoder) {
  const auto header = timeline::DecodeChunkHeader(chunk);
  if (!header.ok()) return header.status();
  const uint64_t bytes = uint64_t{header->header_bytes} + header->payload_bytes;
  if (bytes > chunk.size()) return absl::DataLossError("the chunk is torn");
  const auto payload = chunk.subspan(header->header_bytes, header->payload_bytes);
  if (timeline::Crc32c(payload) != header->payload_crc) {
    return absl::DataLossError("the chunk does not match its checksum");
  }
  return decoder.Open(*header, payload);
}

bool HoldsRecords(const timeline::ChunkHeader& header) {
  return header.first_sequence <= header.last_sequence;
}

}  // namespace

int64_t Stream::OnAxis(int64_t mono_ns) const {
  const auto within = [](int64_t ns) {
    return std::clamp(ns, -(int64_t{1} << 61), int64_t{1} << 61);
  };
  return std::clamp(within(mono_ns) + within(ahead_ns), int64_t{0}, int64_t{1} << 62);
}

absl::StatusOr<ChunkStore> ChunkStore::OpenFile(const std::string& path) {
  ChunkStore store{Limits()};
  store.file_.emplace(path);
  if (absl::Status status = store.file_->CheckBeginning(); !status.ok()) return status;
  if (absl::Status status = store.Refresh(); !status.ok()) return status;
  if (store.chunks_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(path), ": no whole chunk of a timeline is in it yet"));
  }
  return store;
}

absl::Status ChunkStore::Refresh() {
  return file_->ListNew([this](uint64_t offset, const timeline::ChunkHeader& header) {
    if (file_->replaced() != replaced_) {
      replaced_ = file_->replaced();
      first_ += chunks_.size();
      chunks_.clear();
      for (FirstChunk& first : first_chunks_) first = {};
    }
    if (!HoldsRecords(header)) return;
    const auto stream = StreamOf("", header, [this, offset] { return file_->ReadChunk(offset); });
    if (!stream.ok()) {
      ++unreadable_;
      return;
    }
    Keep({.place = PlaceOf(*stream, header), .offset = offset, .bytes = {}});
  });
}

absl::Status ChunkStore::Add(const std::string& agent, std::span<const uint8_t> chunk,
                             int64_t now_ns) {
  const auto header = timeline::DecodeChunkHeader(chunk);
  if (!header.ok()) {
    ++unreadable_;
    return header.status();
  }
  if (!HoldsRecords(*header)) return absl::OkStatus();
  const auto stream = StreamOf(
      agent, *header, [chunk] { return std::vector<uint8_t>(chunk.begin(), chunk.end()); });
  if (!stream.ok()) {
    ++unreadable_;
    return stream.status();
  }
  if (const int64_t ahead_ns = PlaceOf(*stream, *header).end_ns - now_ns;
      now_ns > 0 && ahead_ns > kMostAhead_ns) {
    streams_[*stream].ahead_ns -= ahead_ns;
  }
  Keep({.place = PlaceOf(*stream, *header),
        .bytes = std::vector<uint8_t>(chunk.begin(), chunk.end())});
  held_bytes_ += chunk.size();
  Forget();
  return absl::OkStatus();
}

void ChunkStore::Keep(Chunk chunk) {
  FirstChunk& first = first_chunks_[chunk.place.stream];
  if (first.held++ == 0) {
    first.number = end();
    first.chunk = chunk;
  }
  first.newest_end_ns = std::max(first.newest_end_ns, chunk.place.end_ns);
  chunks_.push_back(std::move(chunk));
}

void ChunkStore::Forget() {
  while (chunks_.size() > 1) {
    const ChunkPlace& oldest = chunks_.front().place;
    const bool is_old = oldest.end_ns < first_chunks_[oldest.stream].newest_end_ns - limits_.age_ns;
    if (held_bytes_ <= limits_.bytes && !is_old) break;
    held_bytes_ -= chunks_.front().bytes.size();
    FirstChunk& first_of_stream = first_chunks_[oldest.stream];
    if (--first_of_stream.held == 0) first_of_stream.chunk = {};
    chunks_.pop_front();
    ++first_;
  }
}

absl::StatusOr<size_t> ChunkStore::StreamOf(
    const std::string& agent, const timeline::ChunkHeader& header,
    absl::FunctionRef<absl::StatusOr<std::vector<uint8_t>>()> bytes) {
  const auto key = std::pair(agent, header.stream_id);
  if (const auto known = by_id_.find(key); known != by_id_.end()) return known->second;
  const auto chunk = bytes();
  if (!chunk.ok()) return chunk.status();
  timeline::ChunkDecoder decoder;
  if (absl::Status status = Open(*chunk, decoder); !status.ok()) return status;
  const v1::ChunkPayload& context = decoder.context();
  exporting::Clocks clocks;
  clocks.Take(context.clock());
  streams_.push_back(
      {.id = header.stream_id,
       .host = agent.empty() ? context.session().host_name() : agent,
       .ahead_ns = clocks.realtime_ahead().value_or(0),
       .has_realtime = clocks.realtime_ahead().has_value(),
       .interval_ns = std::clamp<int64_t>(static_cast<int64_t>(context.session().interval_ns()), 0,
                                          kLongestInterval_ns)});
  first_chunks_.emplace_back();
  by_id_.emplace(key, streams_.size() - 1);
  return streams_.size() - 1;
}

ChunkPlace ChunkStore::PlaceOf(size_t stream, const timeline::ChunkHeader& header) const {
  return {.stream = stream,
          .begin_ns = streams_[stream].OnAxis(header.first_mono_ns),
          .end_ns = streams_[stream].OnAxis(header.last_mono_ns),
          .bytes = header.payload_bytes};
}

absl::StatusOr<std::span<const uint8_t>> ChunkStore::Load(uint64_t number) const {
  return Load(chunks_[number - first_]);
}

absl::StatusOr<std::span<const uint8_t>> ChunkStore::LoadFirst(size_t stream) const {
  const FirstChunk& first = first_chunks_[stream];
  if (first.held == 0) return absl::NotFoundError("nothing of this recording is held any more");
  return Load(first.chunk);
}

absl::StatusOr<std::span<const uint8_t>> ChunkStore::Load(const Chunk& chunk) const {
  if (!file_) return std::span<const uint8_t>(chunk.bytes);
  auto bytes = file_->ReadChunk(chunk.offset);
  if (!bytes.ok()) return bytes.status();
  loaded_ = *std::move(bytes);
  return std::span<const uint8_t>(loaded_);
}

std::optional<TimeSpan> ChunkStore::Span() const {
  if (chunks_.empty()) return std::nullopt;
  TimeSpan span{.begin_ns = chunks_.front().place.begin_ns, .end_ns = chunks_.front().place.end_ns};
  for (const Chunk& chunk : chunks_) {
    span.begin_ns = std::min(span.begin_ns, chunk.place.begin_ns);
    span.end_ns = std::max(span.end_ns, chunk.place.end_ns);
  }
  return span;
}

absl::Status ForEachEntry(std::span<const uint8_t> chunk,
                          absl::FunctionRef<absl::Status(const timeline::Entry&)> sink) {
  timeline::ChunkDecoder decoder;
  if (absl::Status status = Open(chunk, decoder); !status.ok()) return status;
  if (absl::Status status = sink({.record = decoder.context().session()}); !status.ok()) {
    return status;
  }
  for (const v1::VcpuSet& set : decoder.context().vcpu_sets()) {
    if (absl::Status status = sink({.record = set}); !status.ok()) return status;
  }
  while (const timeline::Entry* entry = decoder.Next()) {
    if (absl::Status status = sink(*entry); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace vcpulse::top

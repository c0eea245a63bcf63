#pragma once

// Chunks of a stream as an agent makes them: markers, not compressed, of a size that is asked for.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/reader.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::stream {

struct StreamChunk {
  timeline::ChunkHeader header;
  std::vector<uint8_t> bytes;
};

inline timeline::StreamId StreamNumber(uint8_t number) { return {number, 0xAB}; }

inline StreamChunk MakeChunk(const timeline::StreamId& stream, uint64_t first, uint64_t last,
                             size_t padding = 10) {
  v1::ChunkPayload content;
  for (uint64_t sequence = first; sequence <= last; ++sequence) {
    v1::TimelineRecord& record = *content.add_records();
    record.set_sequence(sequence);
    record.mutable_marker()->set_mono_ns(static_cast<int64_t>(sequence) * 1000);
    record.mutable_marker()->set_name(std::string(sequence == first ? padding : 1, 'm'));
  }
  const std::string payload = content.SerializeAsString();
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(payload.data()),
                                       payload.size());
  StreamChunk chunk{.header = {.payload_bytes = static_cast<uint32_t>(bytes.size()),
                               .content_bytes = static_cast<uint32_t>(bytes.size()),
                               .stream_id = stream,
                               .first_sequence = first,
                               .last_sequence = last,
                               .first_mono_ns = static_cast<int64_t>(first) * 1000,
                               .last_mono_ns = static_cast<int64_t>(last) * 1000,
                               .payload_crc = timeline::Crc32c(bytes)}};
  const auto head = timeline::EncodeChunkHeader(chunk.header);
  chunk.bytes.assign(head.begin(), head.end());
  chunk.bytes.insert(chunk.bytes.end(), bytes.begin(), bytes.end());
  return chunk;
}

inline v1::LostRecords LostSpan(uint64_t first, uint64_t last,
                                v1::LostRecords::Reason reason = v1::LostRecords::REASON_NOT_HELD) {
  v1::LostRecords lost;
  lost.set_first_sequence(first);
  lost.set_last_sequence(last);
  lost.set_reason(reason);
  return lost;
}

// The sequence numbers that reading gives, and its report.
struct ReadBack {
  std::vector<uint64_t> sequences;
  timeline::ReadReport report;
};

inline timeline::EntrySink SinkOfSequences(ReadBack* back) {
  return [back](const timeline::Entry& entry) {
    if (entry.sequence != 0) back->sequences.push_back(entry.sequence);
    return absl::OkStatus();
  };
}

inline ReadBack ReadSequences(const std::string& path) {
  ReadBack back;
  const auto report = timeline::ReadTimeline(path, SinkOfSequences(&back));
  EXPECT_TRUE(report.ok()) << report.status();
  if (report.ok()) back.report = *report;
  return back;
}

inline std::vector<uint64_t> Sequences(uint64_t first, uint64_t last) {
  std::vector<uint64_t> sequences;
  for (uint64_t i = first; i <= last; ++i) sequences.push_back(i);
  return sequences;
}

}  // namespace vcpulse::stream

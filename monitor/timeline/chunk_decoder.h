#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/entry.h"
#include "monitor/timeline/tick_columns.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::timeline {

// What one chunk may take in memory: its content, the messages that it is parsed to, and what
// decoding its ticks needs. Compressed messages of two bytes take hundreds in memory, so this is
// reckoned before any is made. A chunk that is cut at ChunkWriterOptions::max_buffered_bytes takes
// at most half of it, whatever its values, for hosts of up to 10,000 vCPUs: two and a half times
// what KVM allows for one VM.
inline constexpr size_t kMaxChunkMemory = size_t{40} << 20;

// The bytes in memory of a ChunkPayload message and its serialised form, which is `content`, before
// any of it is parsed. Never less than what parsing takes. DataLoss where the bytes are not proto3,
// or take more than kMaxChunkMemory.
absl::StatusOr<size_t> ReckonMemory(std::span<const uint8_t> content);

// Whether a chunk of `payload`, which is known to take `parsed_bytes` by ReckonMemory, takes no
// more than kMaxChunkMemory while its ticks are decoded. DataLoss where it does not.
absl::Status CheckDecodingMemory(const v1::ChunkPayload& payload, size_t parsed_bytes);

// Whether a payload is as long as its header says once it is decompressed, as it says itself: what
// does not could be a bomb. DataLoss; nothing is decompressed.
absl::Status CheckDeclaredSize(const ChunkHeader& header, std::span<const uint8_t> payload);

// The content of one chunk: payload bytes -> records in order. Pure. Use again for the next chunk:
// it keeps its memory.
class ChunkDecoder {
 public:
  // Takes in a payload whose CRC is good. DataLoss where it is not what its header says, does not
  // fit together or takes more than kMaxChunkMemory; then there is nothing to get.
  absl::Status Open(const ChunkHeader& header, std::span<const uint8_t> payload);

  // Context; the vCPU sets are those that the ticks inside need. Valid until Next.
  const v1::ChunkPayload& context() const { return content_; }

  // The next record, or nothing after the last. What it points to is valid until the next call.
  // A record of a kind that this release does not know is passed over.
  const Entry* Next();

 private:
  // The ticks of one (vm, epoch).
  struct Group {
    uint32_t vm = 0;
    uint32_t epoch = 0;
    bool has_base = false;
    ColumnReader columns;
    core::Sample previous{};
    bool has_previous = false;
  };

  absl::Status Decompress(const ChunkHeader& header, std::span<const uint8_t> payload);
  absl::Status OpenGroups();
  absl::Status OrderRecords(const ChunkHeader& header);
  void TakeTick(Group& group);
  bool TakeRecord(v1::TimelineRecord& record);
  void GiveTickBack();

  std::vector<uint8_t> plain_;
  size_t kept_bytes_ = 0;  // of content_, at most
  v1::ChunkPayload content_;
  std::vector<Group> groups_;
  // For each sequence number from the header's first on: its group, or kRecord for the next of
  // content_.records.
  std::vector<uint32_t> owners_;
  size_t next_owner_ = 0;
  int next_record_ = 0;
  uint64_t first_sequence_ = 0;
  Entry entry_;
  Group* lent_ = nullptr;  // the group whose sample entry_ holds
};

}  // namespace vcpulse::timeline

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/entry.h"
#include "monitor/timeline/tick_columns.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::timeline {

// The content of one chunk: payload bytes -> records in order. Pure. Use again for the next chunk:
// it keeps its memory.
class ChunkDecoder {
 public:
  // Takes in a payload whose CRC is good. DataLoss where it is not what its header says or does not
  // fit together; then there is nothing to get.
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

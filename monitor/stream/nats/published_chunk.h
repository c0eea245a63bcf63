#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "monitor/stream/nats/subject.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::stream {

// A chunk as a broker hands it out.
struct PublishedChunk {
  Subject subject;
  timeline::ChunkHeader header;
  uint64_t settles_to = 0;           // SettledBy
  std::span<const uint8_t> bytes{};  // of the message
};

// A message's subject and bytes as one whole chunk of the stream that the subject names. Errors:
// DataLoss in words for anything else.
absl::StatusOr<PublishedChunk> ParsePublishedChunk(const std::string& subject,
                                                   std::span<const uint8_t> bytes);

}  // namespace vcpulse::stream

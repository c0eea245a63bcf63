#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/timeline/chunk_header.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::timeline {

// A chunk's bytes from its content. Use again for the next chunk: it keeps its memory.
class ChunkEncoder {
 public:
  ChunkEncoder();
  ~ChunkEncoder();

  // `header` has the stream, the sequence numbers and the instants; all else is filled in. Valid
  // until the next call. ResourceExhausted where the content is more than a reader takes
  // (kMaxPayloadBytes, kMaxChunkMemory).
  absl::StatusOr<std::span<const uint8_t>> Encode(ChunkHeader header,
                                                  const v1::ChunkPayload& payload);

 private:
  class Compressor;

  std::unique_ptr<Compressor> compressor_;
  std::vector<uint8_t> content_;
  std::vector<uint8_t> chunk_;
};

// The bytes of a chunk that holds no record and says what is lost.
std::vector<uint8_t> EncodeLostChunk(const StreamId& stream, const v1::LostRecords& lost);

}  // namespace vcpulse::timeline

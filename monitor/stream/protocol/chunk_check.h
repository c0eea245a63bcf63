#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::stream {

// Whether the payload of a Chunk frame is one whole chunk of `stream` that can be stored unread:
// header and CRCs are good, it holds records, and neither its stored nor its declared size is
// beyond the caps. Nothing is decompressed. Errors: DataLoss, Unimplemented for a chunk of a later
// release.
absl::StatusOr<timeline::ChunkHeader> CheckChunk(std::span<const uint8_t> chunk,
                                                 const timeline::StreamId& stream);

}  // namespace vcpulse::stream

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "monitor/timeline/writer.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::timeline {

// Gives the records of one whole chunk again as several chunks of the same stream and sequence
// numbers, in order, each at most `max_chunk_bytes` long, so that a chunk of an old file can go
// over the wire. One that is short enough is given as it is. Each of the
// new chunks has the context that its records need, and the clock snapshot; together they say what
// the chunk said. Errors: DataLoss for what is no whole chunk, Unimplemented for one of a later
// release, ResourceExhausted naming the sequence number where a single record is too long (nothing
// or a part has been given then), those of `sink`.
absl::Status RecutChunk(std::span<const uint8_t> chunk, size_t max_chunk_bytes,
                        const ByteSink& sink);

// The same of the records from `first_sequence` on, one of those inside: what came before is in
// another chunk. Errors: as above but for a record that is too long.
absl::Status CutChunkBefore(uint64_t first_sequence, std::span<const uint8_t> chunk,
                            const ByteSink& sink);

// Gives the chunk once more after `edit` has had its content, of which it may change records that
// are no ticks, but for their sequence numbers and instants; as it is where that returned false.
// Errors: as above.
absl::Status EditChunk(std::span<const uint8_t> chunk,
                       absl::FunctionRef<bool(v1::ChunkPayload& content)> edit,
                       const ByteSink& sink);

}  // namespace vcpulse::timeline

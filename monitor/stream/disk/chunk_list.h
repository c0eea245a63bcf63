#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/stream/disk/files.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::stream {

// Where the whole chunks of a file lie, found by hopping from header to header and checking each
// payload's CRC.
struct ChunkPlace {
  uint64_t offset = 0;
  timeline::ChunkHeader header;
  // Last sequence that the chunk settles: header.last_sequence, or that of its LostRecords.
  uint64_t settles_to = 0;

  uint64_t bytes() const { return header.header_bytes + header.payload_bytes; }
};

// The last sequence that a chunk of that header and payload settles.
uint64_t SettledBy(const timeline::ChunkHeader& header, std::span<const uint8_t> payload);

// An instant of the chunk's CLOCK_MONOTONIC by the wall clock of its own snapshot, ns since 1970;
// nothing where it has none.
std::optional<int64_t> RealtimeIn(const timeline::ChunkHeader& header,
                                  std::span<const uint8_t> payload, int64_t mono_ns);

struct ChunkList {
  std::vector<ChunkPlace> chunks;  // the whole ones, also those behind damage
  uint64_t good_bytes = 0;         // up to the first byte that is not of a whole chunk
  uint64_t file_bytes = 0;
};

// Errors: those of `files`, and Unimplemented for a chunk of a later release.
absl::StatusOr<ChunkList> ListChunks(Files& files, const std::string& path);

}  // namespace vcpulse::stream

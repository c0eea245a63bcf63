#pragma once

// monitor/timeline keeps the records of one run: the chunked file (.vpt), its writer, its reader
// and recovery. It knows no counters, no clock and no socket: bytes and records only.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::timeline {

using StreamId = std::array<uint8_t, 16>;

// The id of a new stream.
StreamId RandomStreamId();

// The fixed-size head of a chunk, little-endian on disk, in this order after the 8 bytes of magic
// "\x89VPT\r\n\x1a\n":
struct ChunkHeader {
  uint16_t version = 1;            // of the header; another one is refused in words
  uint16_t header_bytes = 80;      // of the whole header, magic and CRC included
  uint32_t required_features = 0;  // a bit the reader does not know: refused in words
  uint32_t payload_bytes = 0;      // as stored
  uint32_t content_bytes = 0;      // after decompression
  StreamId stream_id{};
  uint64_t first_sequence = 0;  // of the records inside, inclusive; first > last: none
  uint64_t last_sequence = 0;
  int64_t first_mono_ns = 0;  // CLOCK_MONOTONIC range of the records inside
  int64_t last_mono_ns = 0;
  uint32_t payload_crc = 0;  // CRC-32C of the payload as stored
  // CRC-32C of all header bytes before it follows on disk.

  bool operator==(const ChunkHeader&) const = default;
};

inline constexpr uint32_t kFeatureZstd = 1u << 0;  // the payload is one zstd frame
// A set inside has groups on several core PMUs, whose counts add up: read without them, the first
// one's would pass for all.
inline constexpr uint32_t kFeatureCorePmus = 1u << 1;
inline constexpr uint32_t kKnownFeatures = kFeatureZstd | kFeatureCorePmus;

// A stored payload or its content larger than this is damage, not data (checked before any memory
// is taken). The writer cuts its chunks far below it.
inline constexpr uint32_t kMaxPayloadBytes = 16u << 20;

// Bytes of a version-1 header on disk. A later version may be longer; its last four bytes are the
// CRC of all before it, so that this reader can tell it from damage.
inline constexpr size_t kChunkHeaderBytes = 8 + 2 + 2 + 4 + 4 + 4 + 16 + 8 + 8 + 8 + 8 + 4 + 4;
inline constexpr size_t kMaxHeaderBytes = 4096;  // of any version

inline constexpr std::array<uint8_t, 8> kChunkMagic = {0x89, 'V', 'P', 'T', '\r', '\n', 0x1a, '\n'};

// The bytes of a version-1 header; header_bytes and the CRC are filled in.
std::array<uint8_t, kChunkHeaderBytes> EncodeChunkHeader(const ChunkHeader& header);

// Reads a header from the start of `bytes`. Errors: OutOfRange where what is there is the beginning
// of a header, DataLoss for wrong magic, lengths or CRC, Unimplemented (with words for people) for
// a version or feature that this reader does not know.
absl::StatusOr<ChunkHeader> DecodeChunkHeader(std::span<const uint8_t> bytes);

// CRC-32C (Castagnoli).
uint32_t Crc32c(std::span<const uint8_t> bytes);

// What tells that the records of a chunk are lost.
v1::LostRecords LostChunk(const ChunkHeader& header, v1::LostRecords::Reason reason);

}  // namespace vcpulse::timeline

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/timeline/byte_source.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::timeline {

// Hops from chunk to chunk and finds the next one after damage. It reads headers and the payloads
// that are asked for, nothing else; what it cannot use it notes as damage.
//
// After damage it looks for the next magic that starts a good header: behind the chunk where its
// header was good and another chunk (or the end) stands where it should end, else from the byte
// after the place where things went wrong.
class ChunkScanner {
 public:
  struct Found {
    uint64_t offset = 0;
    ChunkHeader header;

    uint64_t payload_offset() const { return offset + kChunkHeaderBytes; }
    uint64_t end() const { return payload_offset() + header.payload_bytes; }
  };

  // `source` must outlive the scanner; damages are appended to `damages`, in rising order.
  ChunkScanner(ByteSource* source, std::vector<Damage>* damages)
      : source_(source), damages_(damages) {}

  // The next chunk with a good header, or nothing at the end. Errors: those of the source, and
  // Unimplemented for a chunk of a later release.
  absl::StatusOr<std::optional<Found>> Next();

  // For the chunk that Next gave last, exactly one of these:
  // Its payload, valid until the next call; nothing where it is damaged or cut off.
  absl::StatusOr<std::optional<std::span<const uint8_t>>> ReadPayload(const Found& chunk);
  // Passes over it unread, unless another chunk does not follow where it should (then its payload
  // is checked). False where it is damaged or cut off.
  absl::StatusOr<bool> Skip(const Found& chunk);

  // Whether anything looked like a timeline: a magic anywhere, or the beginning of one that is all
  // there is.
  bool recognised() const { return recognised_; }

 private:
  absl::StatusOr<ChunkHeader> ReadHeader(uint64_t offset, size_t* bytes_there);
  absl::StatusOr<std::optional<uint64_t>> FindMagic(uint64_t from);
  absl::StatusOr<bool> ChunkOrEndAt(uint64_t offset);
  void BeginDamage(uint64_t offset, std::string reason);
  void EndDamage(uint64_t offset);

  ByteSource* source_;
  std::vector<Damage>* damages_;
  uint64_t position_ = 0;          // where the next header is looked for
  std::optional<Damage> current_;  // begun, its end not yet found
  bool recognised_ = false;
  uint64_t end_ = 0;  // of the input, once it was reached
  std::vector<uint8_t> payload_;
  std::vector<uint8_t> window_;
};

}  // namespace vcpulse::timeline

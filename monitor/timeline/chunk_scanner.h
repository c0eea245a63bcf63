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

// Payloads that are read in vain: they do not match their checksum, and the bytes of each are
// looked through again for chunks. Headers that claim the same bytes again and again would cost the
// square of a file's size; a file of honest chunks has at most one such payload for each time that
// its writer was killed.
class VainReading {
 public:
  // Whether a payload may be read that begins at `offset`: all that was read in vain stays below
  // what lies before it and four of the longest payloads.
  bool Affords(uint64_t offset, uint32_t payload_bytes) const {
    return bytes_ + payload_bytes <= offset + 4 * uint64_t{kMaxPayloadBytes};
  }
  void Note(uint32_t payload_bytes) { bytes_ += payload_bytes; }

 private:
  uint64_t bytes_ = 0;
};

inline constexpr char kTooMuchDamage[] = "not read: too much before it was damaged";

// Hops from chunk to chunk and finds the next one after damage. It reads headers and the payloads
// that are asked for, nothing else; what it cannot use it notes as damage.
//
// After damage it looks for the next magic that starts a good header: behind the chunk where its
// header was good and another chunk (or the end) stands where it should end, else from the byte
// after the place where things went wrong. The time it takes is linear in the size of the input.
class ChunkScanner {
 public:
  struct Found {
    uint64_t offset = 0;
    ChunkHeader header;

    uint64_t payload_offset() const { return offset + kChunkHeaderBytes; }
    uint64_t end() const { return payload_offset() + header.payload_bytes; }
  };

  // `source` must outlive the scanner; damages are appended to `damages`, in rising order. The
  // first header is looked for at `from`.
  ChunkScanner(ByteSource* source, std::vector<Damage>* damages, uint64_t from = 0)
      : source_(source), damages_(damages), position_(from) {}

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
  absl::StatusOr<bool> IsThere(uint64_t offset);
  // The same as ReadPayload returns for a damaged one.
  std::nullopt_t PassOver(const Found& chunk, std::string reason, uint64_t go_on_at);
  void BeginDamage(uint64_t offset, std::string reason);
  void EndDamage(uint64_t offset);

  ByteSource* source_;
  std::vector<Damage>* damages_;
  uint64_t position_;              // where the next header is looked for
  std::optional<Damage> current_;  // begun, its end not yet found
  bool recognised_ = false;
  uint64_t end_ = 0;  // of the input, once it was reached
  VainReading vain_;
  std::vector<uint8_t> payload_;
  std::vector<uint8_t> window_;
};

}  // namespace vcpulse::timeline

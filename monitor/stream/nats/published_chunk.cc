#include "monitor/stream/nats/published_chunk.h"

#include <algorithm>

#include "monitor/stream/disk/chunk_list.h"

namespace vcpulse::stream {
namespace {

// Beyond it no recording comes, and sums would overflow.
constexpr uint64_t kLastSequence = uint64_t{1} << 62;

}  // namespace

absl::StatusOr<PublishedChunk> ParsePublishedChunk(const std::string& subject,
                                                   std::span<const uint8_t> bytes) {
  const auto whose = ParseSubject(subject);
  if (!whose) return absl::DataLossError("its subject is none of vcpulse's");
  const auto header = timeline::DecodeChunkHeader(bytes);
  if (!header.ok()) return absl::DataLossError(header.status().message());
  const auto payload = bytes.subspan(std::min<size_t>(header->header_bytes, bytes.size()));
  if (payload.size() != header->payload_bytes || timeline::Crc32c(payload) != header->payload_crc) {
    return absl::DataLossError("the chunk is damaged");
  }
  if (header->stream_id != whose->stream) {
    return absl::DataLossError("the chunk is of another stream than its subject says");
  }
  const uint64_t settles_to = SettledBy(*header, payload);
  if (header->first_sequence == 0 || settles_to > kLastSequence ||
      header->first_sequence > kLastSequence) {
    return absl::DataLossError("its sequence numbers are none");
  }
  return PublishedChunk{
      .subject = *whose, .header = *header, .settles_to = settles_to, .bytes = bytes};
}

}  // namespace vcpulse::stream

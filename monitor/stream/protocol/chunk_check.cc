#include "monitor/stream/protocol/chunk_check.h"

#include <zstd.h>

#include <limits>

#include "absl/strings/str_cat.h"

namespace vcpulse::stream {
namespace {

using timeline::ChunkHeader;

absl::StatusOr<ChunkHeader> DecodeHeader(std::span<const uint8_t> chunk) {
  absl::StatusOr<ChunkHeader> header = timeline::DecodeChunkHeader(chunk);
  if (header.ok() || absl::IsDataLoss(header.status())) return header;
  if (!absl::IsUnimplemented(header.status())) {
    return absl::DataLossError(header.status().message());
  }
  return absl::UnimplementedError(
      absl::StrCat("the agent is of a later release, update vcpulse on the collector: ",
                   header.status().message()));
}

// A zstd frame says what it decompresses to. What says another size than the header, or none, could
// be a bomb for whoever reads the timeline.
absl::Status CheckDeclaredSize(const ChunkHeader& header, std::span<const uint8_t> payload) {
  if ((header.required_features & timeline::kFeatureZstd) == 0) return absl::OkStatus();
  if (ZSTD_findFrameCompressedSize(payload.data(), payload.size()) != payload.size()) {
    return absl::DataLossError("a chunk whose payload is not one zstd frame");
  }
  // Unknown and error are the two largest numbers.
  if (ZSTD_getFrameContentSize(payload.data(), payload.size()) != header.content_bytes) {
    return absl::DataLossError("a chunk whose content has another size than its header says");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ChunkHeader> CheckChunk(std::span<const uint8_t> chunk,
                                       const timeline::StreamId& stream) {
  // It has checked the caps too: kMaxPayloadBytes for payload and content.
  absl::StatusOr<ChunkHeader> header = DecodeHeader(chunk);
  if (!header.ok()) return header;
  if (chunk.size() != size_t{header->header_bytes} + header->payload_bytes) {
    return absl::DataLossError(absl::StrCat("a chunk frame of ", chunk.size(),
                                            " bytes whose chunk has ",
                                            size_t{header->header_bytes} + header->payload_bytes));
  }
  if (header->stream_id != stream) {
    return absl::DataLossError("a chunk of another stream than the Hello named");
  }
  if (header->first_sequence == 0 || header->first_sequence > header->last_sequence ||
      header->last_sequence == std::numeric_limits<uint64_t>::max()) {
    return absl::DataLossError("a chunk without records");
  }
  const auto payload = chunk.subspan(header->header_bytes);
  if (timeline::Crc32c(payload) != header->payload_crc) {
    return absl::DataLossError("a chunk that does not match its checksum");
  }
  if (absl::Status status = CheckDeclaredSize(*header, payload); !status.ok()) return status;
  return header;
}

}  // namespace vcpulse::stream

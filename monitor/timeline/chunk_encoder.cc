#include "monitor/timeline/chunk_encoder.h"

#include <zstd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "monitor/core/check.h"
#include "monitor/timeline/chunk_decoder.h"

namespace vcpulse::timeline {
namespace {

constexpr int kZstdLevel = 3;

bool AnyOnCorePmus(const v1::ChunkPayload& payload) {
  return std::ranges::any_of(payload.vcpu_sets(),
                             [](const v1::VcpuSet& set) { return set.core_pmus() > 1; });
}

}  // namespace

// One zstd context, used again for each chunk.
class ChunkEncoder::Compressor {
 public:
  Compressor() : context_(ZSTD_createCCtx()) {
    VCPULSE_CHECK(context_ != nullptr, "zstd has no memory for a context");
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kZstdLevel);
  }

  static size_t Bound(size_t content_bytes) { return ZSTD_compressBound(content_bytes); }

  // Compresses into `out` (at least Bound() bytes); gives the length.
  absl::StatusOr<size_t> Compress(std::span<const uint8_t> content, std::span<uint8_t> out) {
    const size_t length =
        ZSTD_compress2(context_.get(), out.data(), out.size(), content.data(), content.size());
    if (ZSTD_isError(length) != 0) {
      return absl::InternalError(absl::StrCat("zstd: ", ZSTD_getErrorName(length)));
    }
    return length;
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context_;
};

ChunkEncoder::ChunkEncoder() : compressor_(std::make_unique<Compressor>()) {}
ChunkEncoder::~ChunkEncoder() = default;

absl::StatusOr<std::span<const uint8_t>> ChunkEncoder::Encode(ChunkHeader header,
                                                              const v1::ChunkPayload& payload) {
  const size_t content_bytes = payload.ByteSizeLong();
  const auto too_large = [content_bytes] {
    return absl::ResourceExhaustedError(
        absl::StrCat("records of ", content_bytes, " bytes do not fit into a chunk"));
  };
  if (content_bytes > kMaxPayloadBytes) return too_large();
  content_.resize(std::max(content_.size(), content_bytes));
  payload.SerializeWithCachedSizesToArray(content_.data());
  const auto memory_bytes = ReckonMemory(std::span(content_).first(content_bytes));
  if (!memory_bytes.ok() || !CheckDecodingMemory(payload, *memory_bytes).ok()) return too_large();
  chunk_.resize(std::max(chunk_.size(), kChunkHeaderBytes + Compressor::Bound(content_bytes)));
  const absl::StatusOr<size_t> length = compressor_->Compress(
      std::span(content_).first(content_bytes), std::span(chunk_).subspan(kChunkHeaderBytes));
  if (!length.ok()) return length.status();

  header.required_features = kFeatureZstd | (AnyOnCorePmus(payload) ? kFeatureCorePmus : 0);
  header.payload_bytes = static_cast<uint32_t>(*length);
  header.content_bytes = static_cast<uint32_t>(content_bytes);
  header.payload_crc = Crc32c(std::span(chunk_).subspan(kChunkHeaderBytes, *length));
  const auto head = EncodeChunkHeader(header);
  std::copy(head.begin(), head.end(), chunk_.begin());
  return std::span<const uint8_t>(chunk_).first(kChunkHeaderBytes + *length);
}

std::vector<uint8_t> EncodeLostChunk(const StreamId& stream, const v1::LostRecords& lost) {
  v1::ChunkPayload content;
  *content.mutable_lost() = lost;
  const std::string payload = content.SerializeAsString();
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(payload.data()),
                                       payload.size());
  // No records, where the first one would be: a reader sees from where on they are missing.
  const auto header = EncodeChunkHeader({
      .payload_bytes = static_cast<uint32_t>(bytes.size()),
      .content_bytes = static_cast<uint32_t>(bytes.size()),
      .stream_id = stream,
      .first_sequence = lost.first_sequence(),
      .last_sequence = lost.first_sequence() - 1,
      .first_mono_ns = lost.first_mono_ns(),
      .last_mono_ns = lost.last_mono_ns(),
      .payload_crc = Crc32c(bytes),
  });
  std::vector<uint8_t> chunk(header.size() + bytes.size());
  std::ranges::copy(bytes, std::ranges::copy(header, chunk.begin()).out);
  return chunk;
}

}  // namespace vcpulse::timeline

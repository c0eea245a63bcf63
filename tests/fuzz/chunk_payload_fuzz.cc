// Chunk frames behind a good handshake. The input is a list of chunks: for each its first sequence
// (relative to the next one), how many records it claims, its content length or a lie about it, and
// its payload, raw or compressed here. All checksums are made right. Whatever the collector takes
// must be harmless for whoever reads the timeline that it makes, or cuts it up.

#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "monitor/stream/protocol/collector_session.h"
#include "monitor/timeline/reader.h"
#include "monitor/timeline/recut.h"
#include "tests/fuzz/stream_bytes.h"

namespace vcpulse::stream {
namespace {

constexpr timeline::StreamId kStream = {1, 2, 3};

v1::Hello SomeHello() {
  v1::Hello hello;
  hello.set_major(1);
  hello.set_min_major(1);
  hello.set_agent_id("a");
  hello.set_stream_id(kStream.data(), kStream.size());
  hello.set_first_sequence(1);
  hello.set_next_sequence(1);
  return hello;
}

std::vector<uint8_t> Compress(std::span<const uint8_t> content) {
  std::vector<uint8_t> out(ZSTD_compressBound(content.size()));
  out.resize(ZSTD_compress(out.data(), out.size(), content.data(), content.size(), 1));
  return out;
}

// One chunk of the input.
std::vector<uint8_t> NextChunk(Input& input, uint64_t next) {
  const uint8_t how = input.Byte();
  timeline::ChunkHeader header{.stream_id = kStream};
  header.first_sequence = next + input.Byte() - 128 * (how & 1);
  header.last_sequence = header.first_sequence + input.Byte() - (how >> 1 & 1);
  header.first_mono_ns = static_cast<int64_t>(input.Byte());
  header.last_mono_ns = static_cast<int64_t>(input.Byte());
  const auto raw = input.Take(input.Length());
  std::vector<uint8_t> payload(raw.begin(), raw.end());
  header.content_bytes = static_cast<uint32_t>(payload.size());
  if ((how & 4) != 0) header.required_features |= timeline::kFeatureZstd;
  if ((how & 8) != 0) header.required_features |= timeline::kFeatureCorePmus;
  if ((how & 4) != 0 && (how & 16) != 0) payload = Compress(raw);
  if ((how & 32) != 0) header.content_bytes = static_cast<uint32_t>(input.Number());
  header.payload_bytes = static_cast<uint32_t>(payload.size());
  header.payload_crc = timeline::Crc32c(payload);
  const auto head = timeline::EncodeChunkHeader(header);
  std::vector<uint8_t> chunk(head.begin(), head.end());
  chunk.insert(chunk.end(), payload.begin(), payload.end());
  return chunk;
}

// A chunk that is taken may be cut up for another wire: what comes out is whole, or nothing does.
void CutUp(std::span<const uint8_t> chunk) {
  std::vector<uint8_t> pieces;
  const absl::Status status =
      timeline::RecutChunk(chunk, chunk.size() - 1, [&](std::span<const uint8_t> piece) {
        if (piece.size() >= chunk.size()) std::abort();
        pieces.insert(pieces.end(), piece.begin(), piece.end());
        return absl::OkStatus();
      });
  if (!status.ok()) return;
  const auto count = [](uint64_t* records) {
    return [records](const timeline::Entry& entry) {
      *records += entry.sequence;
      return absl::OkStatus();
    };
  };
  uint64_t before = 0;
  uint64_t after = 0;
  const auto whole = timeline::ReadTimelineBytes(chunk, count(&before));
  const auto cut = timeline::ReadTimelineBytes(pieces, count(&after));
  if (!whole.ok() || !cut.ok() || before != after || !cut->damages.empty()) std::abort();
}

// The timeline that a collector would have made.
void ReadBack(std::span<const uint8_t> stored) {
  if (stored.empty()) return;
  uint64_t last = 0;
  const auto report = timeline::ReadTimelineBytes(stored, [&](const timeline::Entry& entry) {
    if (entry.sequence != 0 && entry.sequence <= last) std::abort();
    if (entry.sequence != 0) last = entry.sequence;
    return absl::OkStatus();
  });
  if (!report.ok()) std::abort();  // each chunk's header is good, so there is a timeline
}

void Play(Input input) {
  std::vector<uint8_t> stored;
  CollectorSession* self = nullptr;
  uint64_t last = 0;
  CollectorSession session(
      {},
      {.hello =
           [&](const v1::Hello&) {
             self->Welcome(0, "", "");
             return absl::OkStatus();
           },
       .chunk =
           [&](const timeline::ChunkHeader& header, std::span<const uint8_t> bytes) {
             if (header.first_sequence != last + 1) std::abort();
             last = header.last_sequence;
             stored.insert(stored.end(), bytes.begin(), bytes.end());
             CutUp(bytes);
             return absl::OkStatus();
           }},
      0);
  self = &session;
  std::vector<uint8_t> frame;
  AppendFrame(FrameType::kHello, SomeHello(), frame);
  if (!session.Receive(frame, 0).ok()) std::abort();
  while (!input.empty()) {
    frame.clear();
    AppendFrame(FrameType::kChunk, NextChunk(input, session.received() + 1), frame);
    if (!session.Receive(frame, 0).ok()) break;
    session.output().clear();
  }
  ReadBack(stored);
}

}  // namespace
}  // namespace vcpulse::stream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vcpulse::stream::Play(vcpulse::stream::Input({data, size}));
  return 0;
}

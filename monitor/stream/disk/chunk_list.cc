#include "monitor/stream/disk/chunk_list.h"

#include <algorithm>
#include <utility>

#include "monitor/timeline/byte_source.h"
#include "monitor/timeline/chunk_decoder.h"
#include "monitor/timeline/chunk_scanner.h"

namespace vcpulse::stream {
namespace {

// A file up to the length that it had at first, through a window: chunks are small. What lies
// beyond the first half of a window behind what was forgotten is read as such: a window for each
// place that a damaged header points to would cost a megabyte for each header.
class WindowSource final : public timeline::ByteSource {
 public:
  WindowSource(Files& files, const std::string& path, uint64_t file_bytes)
      : files_(files), path_(path), file_bytes_(file_bytes) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    if (offset >= file_bytes_) return 0;
    const size_t length = std::min<uint64_t>(out.size(), file_bytes_ - offset);
    if (offset < start_ || offset + length > start_ + window_.size()) {
      if (offset + length > forgotten_ + kWindowBytes / 2) {
        return files_.ReadAt(path_, offset, out.first(length));
      }
      window_.resize(std::min<uint64_t>(kWindowBytes, file_bytes_ - forgotten_));
      start_ = forgotten_;
      const absl::StatusOr<size_t> got = files_.ReadAt(path_, start_, window_);
      window_.resize(got.value_or(0));
      if (!got.ok()) return got.status();
    }
    if (offset >= start_ + window_.size()) return 0;
    const size_t there = std::min(length, window_.size() - (offset - start_));
    std::copy_n(window_.begin() + static_cast<ptrdiff_t>(offset - start_), there, out.begin());
    return there;
  }
  void Forget(uint64_t offset) override { forgotten_ = offset; }

 private:
  static constexpr size_t kWindowBytes = 1u << 20;

  Files& files_;
  const std::string& path_;
  const uint64_t file_bytes_;
  uint64_t forgotten_ = 0;
  uint64_t start_ = 0;
  std::vector<uint8_t> window_;
};

}  // namespace

uint64_t SettledBy(const timeline::ChunkHeader& header, std::span<const uint8_t> payload) {
  if (header.first_sequence <= header.last_sequence) return header.last_sequence;
  timeline::ChunkDecoder decoder;
  if (!decoder.Open(header, payload).ok() || !decoder.context().has_lost()) {
    return header.last_sequence;
  }
  return std::max(header.last_sequence, decoder.context().lost().last_sequence());
}

std::optional<int64_t> RealtimeIn(const timeline::ChunkHeader& header,
                                  std::span<const uint8_t> payload, int64_t mono_ns) {
  timeline::ChunkDecoder decoder;
  if (!decoder.Open(header, payload).ok() || !decoder.context().has_clock()) return std::nullopt;
  const v1::ClockSnapshot& clock = decoder.context().clock();
  int64_t since_ns = 0;
  int64_t at_ns = 0;
  if (__builtin_sub_overflow(mono_ns, clock.mono_ns(), &since_ns) ||
      __builtin_add_overflow(clock.realtime_ns(), since_ns, &at_ns)) {
    return std::nullopt;
  }
  return at_ns;
}

absl::StatusOr<ChunkList> ListChunks(Files& files, const std::string& path) {
  const absl::StatusOr<uint64_t> size = files.SizeOf(path);
  if (!size.ok()) return size.status();
  ChunkList list{.file_bytes = *size};
  WindowSource source(files, path, *size);
  std::vector<timeline::Damage> damages;
  timeline::ChunkScanner scanner(&source, &damages);
  while (true) {
    const auto found = scanner.Next();
    if (!found.ok()) return found.status();
    if (!found->has_value()) break;
    const auto payload = scanner.ReadPayload(**found);
    if (!payload.ok()) return payload.status();
    if (!payload->has_value()) continue;
    const timeline::ChunkHeader& header = (*found)->header;
    list.chunks.push_back(
        {.offset = (*found)->offset, .header = header, .settles_to = SettledBy(header, **payload)});
  }
  list.good_bytes = damages.empty() ? *size : damages.front().offset;
  return list;
}

}  // namespace vcpulse::stream

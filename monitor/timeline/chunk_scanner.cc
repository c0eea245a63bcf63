#include "monitor/timeline/chunk_scanner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace vcpulse::timeline {
namespace {

// Bytes looked through at once for a magic: little at first, so that input made of magics costs no
// more than a few times its length.
constexpr size_t kFirstScanBytes = 1u << 10;
constexpr size_t kMaxScanBytes = 64u << 10;
// Input that has no magic for so long is no timeline.
constexpr uint64_t kMostBeforeFirst = 1u << 30;
constexpr char kCutOff[] = "the file ends inside a chunk";

}  // namespace

absl::StatusOr<std::optional<ChunkScanner::Found>> ChunkScanner::Next() {
  while (true) {
    if (!recognised_ && position_ > kMostBeforeFirst) {  // /dev/zero has no end
      EndDamage(position_);
      return std::nullopt;
    }
    size_t bytes_there = 0;
    absl::StatusOr<ChunkHeader> header = ReadHeader(position_, &bytes_there);
    if (header.ok()) {
      recognised_ = true;
      EndDamage(position_);
      source_->Forget(position_);
      return Found{position_, *std::move(header)};
    }
    if (!absl::IsDataLoss(header.status()) && !absl::IsOutOfRange(header.status())) {
      return header.status();
    }
    if (bytes_there == 0) {
      EndDamage(position_);
      return std::nullopt;
    }
    if (position_ == 0) {
      const absl::StatusOr<bool> magic_first = ChunkOrEndAt(0);
      if (!magic_first.ok()) return magic_first.status();
      recognised_ = *magic_first;
    }
    const bool cut_off = absl::IsOutOfRange(header.status());
    BeginDamage(position_, cut_off ? kCutOff : std::string(header.status().message()));
    absl::StatusOr<std::optional<uint64_t>> magic = FindMagic(position_ + 1);
    if (!magic.ok()) return magic.status();
    if (magic->has_value()) recognised_ = true;
    position_ = magic->value_or(end_);
  }
}

absl::StatusOr<std::optional<std::span<const uint8_t>>> ChunkScanner::ReadPayload(
    const Found& chunk) {
  // Another chunk may lie inside of one that is not used: one that was written after this one had
  // been cut off.
  const absl::StatusOr<bool> whole = IsThere(chunk.end() - 1);
  if (!whole.ok()) return whole.status();
  if (!*whole) return PassOver(chunk, kCutOff, chunk.payload_offset());
  const uint32_t length = chunk.header.payload_bytes;
  if (!vain_.Affords(chunk.offset, length)) {
    return PassOver(chunk, kTooMuchDamage, chunk.payload_offset());
  }
  payload_.resize(length);
  const absl::StatusOr<size_t> got = source_->ReadAt(chunk.payload_offset(), payload_);
  if (!got.ok()) return got.status();
  if (*got < length) return PassOver(chunk, kCutOff, chunk.payload_offset());
  if (Crc32c(payload_) == chunk.header.payload_crc) {
    position_ = chunk.end();
    return std::span<const uint8_t>(payload_);
  }
  const absl::StatusOr<bool> ends_well = ChunkOrEndAt(chunk.end());
  if (!ends_well.ok()) return ends_well.status();
  if (!*ends_well) vain_.Note(length);
  return PassOver(chunk, "chunk does not match its checksum",
                  *ends_well ? chunk.end() : chunk.payload_offset());
}

std::nullopt_t ChunkScanner::PassOver(const Found& chunk, std::string reason, uint64_t go_on_at) {
  BeginDamage(chunk.offset, std::move(reason));
  position_ = go_on_at;
  return std::nullopt;
}

absl::StatusOr<bool> ChunkScanner::IsThere(uint64_t offset) {
  std::array<uint8_t, 1> byte{};
  const absl::StatusOr<size_t> got = source_->ReadAt(offset, byte);
  if (!got.ok()) return got.status();
  return *got == byte.size();
}

absl::StatusOr<bool> ChunkScanner::Skip(const Found& chunk) {
  // The last byte of it tells a chunk that is followed by the end from one that is cut off.
  const absl::StatusOr<bool> is_there = IsThere(chunk.end() - 1);
  if (!is_there.ok()) return is_there.status();
  if (*is_there) {
    const absl::StatusOr<bool> ends_well = ChunkOrEndAt(chunk.end());
    if (!ends_well.ok()) return ends_well.status();
    if (*ends_well) {
      position_ = chunk.end();
      return true;
    }
  }
  const auto payload = ReadPayload(chunk);
  if (!payload.ok()) return payload.status();
  return payload->has_value();
}

// DataLoss or OutOfRange where no good header stands there, OutOfRange only where the bytes end.
absl::StatusOr<ChunkHeader> ChunkScanner::ReadHeader(uint64_t offset, size_t* bytes_there) {
  std::array<uint8_t, kMaxHeaderBytes> bytes;
  auto wanted = std::span(bytes).first(kChunkHeaderBytes);
  absl::StatusOr<size_t> got = source_->ReadAt(offset, wanted);
  if (!got.ok()) return got.status();
  *bytes_there = *got;
  if (*got < wanted.size()) end_ = offset + *got;
  absl::StatusOr<ChunkHeader> header = DecodeChunkHeader(wanted.first(*got));
  if (!absl::IsOutOfRange(header.status()) || *got < wanted.size()) return header;

  // A longer one, of a later version.
  got = source_->ReadAt(offset, bytes);
  if (!got.ok()) return got.status();
  if (*got < bytes.size()) end_ = offset + *got;
  return DecodeChunkHeader(std::span(bytes).first(*got));
}

// The first magic at or after `from`; nothing, and end_ set, where there is none.
absl::StatusOr<std::optional<uint64_t>> ChunkScanner::FindMagic(uint64_t from) {
  window_.resize(kFirstScanBytes);
  while (true) {
    const absl::StatusOr<size_t> got = source_->ReadAt(from, window_);
    if (!got.ok()) return got.status();
    const auto end = window_.begin() + static_cast<ptrdiff_t>(*got);
    const auto hit = std::search(window_.begin(), end, kChunkMagic.begin(), kChunkMagic.end());
    if (hit != end) return from + static_cast<uint64_t>(hit - window_.begin());
    if (*got < window_.size()) {
      end_ = from + *got;
      return std::nullopt;
    }
    from += window_.size() - (kChunkMagic.size() - 1);
    source_->Forget(from);
    if (!recognised_ && from > kMostBeforeFirst) {
      end_ = from;
      return std::nullopt;
    }
    window_.resize(std::min(2 * window_.size(), kMaxScanBytes));
  }
}

absl::StatusOr<bool> ChunkScanner::ChunkOrEndAt(uint64_t offset) {
  std::array<uint8_t, kChunkMagic.size()> bytes{};
  const absl::StatusOr<size_t> got = source_->ReadAt(offset, bytes);
  if (!got.ok()) return got.status();
  return std::equal(bytes.begin(), bytes.begin() + *got, kChunkMagic.begin());
}

void ChunkScanner::BeginDamage(uint64_t offset, std::string reason) {
  if (!current_) current_ = Damage{.offset = offset, .reason = std::move(reason)};
}

void ChunkScanner::EndDamage(uint64_t offset) {
  if (!current_) return;
  current_->bytes = offset - current_->offset;
  damages_->push_back(*std::move(current_));
  current_.reset();
}

}  // namespace vcpulse::timeline

// A spool, and a collected timeline, whose files hold anything. The input is a list of pieces:
//   which file (1 byte), what (1 byte), length (1 byte), so many bytes.
// `what` even: the bytes as they are. Odd: a chunk whose checksums are good; the bytes are its
// first sequence (2), records (1), stream (1) and payload.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "monitor/stream/disk/names.h"
#include "monitor/stream/disk/spool.h"
#include "monitor/stream/disk/stream_folders.h"
#include "monitor/stream/disk/stream_store.h"
#include "tests/fakes/crashing_files.h"

namespace {

using vcpulse::fakes::CrashingFiles;
using vcpulse::stream::Spool;
using vcpulse::stream::StreamFolders;
using vcpulse::stream::StreamStore;
using vcpulse::timeline::StreamId;

constexpr uint64_t kMaxDiskBytes = 2000;

void Require(bool holds) {
  if (!holds) std::abort();
}

std::vector<uint8_t> Chunk(const StreamId& stream, uint64_t first, uint64_t records,
                           std::span<const uint8_t> payload) {
  const auto head =
      vcpulse::timeline::EncodeChunkHeader({.payload_bytes = static_cast<uint32_t>(payload.size()),
                                            .content_bytes = static_cast<uint32_t>(payload.size()),
                                            .stream_id = stream,
                                            .first_sequence = first,
                                            .last_sequence = first + records - 1,
                                            .payload_crc = vcpulse::timeline::Crc32c(payload)});
  std::vector<uint8_t> chunk(head.size() + payload.size());
  std::copy(payload.begin(), payload.end(), std::copy(head.begin(), head.end(), chunk.begin()));
  return chunk;
}

StreamId StreamOf(uint8_t number) { return {static_cast<uint8_t>(number % 3)}; }

std::string FileOf(uint8_t selector) {
  // The highest sequences too.
  const uint64_t first = (selector & 0x80) != 0
                             ? std::numeric_limits<uint64_t>::max() - (selector & 0xf)
                             : (selector & 0xf);
  return vcpulse::stream::FileNameOf(first);
}

std::map<std::string, std::vector<uint8_t>> FilesOf(std::span<const uint8_t> in) {
  std::map<std::string, std::vector<uint8_t>> files;
  while (in.size() >= 3) {
    const uint8_t selector = in[0];
    const bool as_chunk = in[1] % 2 == 1;
    const size_t length = std::min<size_t>(in[2], in.size() - 3);
    auto bytes = in.subspan(3, length);
    in = in.subspan(3 + length);
    const uint8_t stream = (selector >> 4) & 0x3;
    auto& file = files[vcpulse::stream::ToHex(StreamOf(stream)) + "/" + FileOf(selector)];
    if (!as_chunk || bytes.size() < 4) {
      file.insert(file.end(), bytes.begin(), bytes.end());
      continue;
    }
    const auto low = static_cast<int16_t>(bytes[0] | bytes[1] << 8);
    const auto chunk =
        Chunk(StreamOf(bytes[3]), static_cast<uint64_t>(int64_t{low}), bytes[2], bytes.subspan(4));
    file.insert(file.end(), chunk.begin(), chunk.end());
  }
  return files;
}

// All that it holds of a stream comes in order, each record once.
void Walk(Spool& spool, const StreamId& stream) {
  uint64_t sequence = spool.range(stream).first_sequence;
  while (const auto item = spool.At(stream, sequence)) {
    const uint64_t first =
        item->is_lost ? item->lost.first_sequence() : item->header.first_sequence;
    const uint64_t last = item->is_lost ? item->lost.last_sequence() : item->header.last_sequence;
    Require(first == sequence && last >= first);
    Require(last != std::numeric_limits<uint64_t>::max());
    sequence = last + 1;
  }
  Require(sequence == spool.range(stream).next_sequence);
}

void RecoverSpool(const std::map<std::string, std::vector<uint8_t>>& contents) {
  CrashingFiles files;
  for (const auto& [name, bytes] : contents) files.Put("/s/0000000001-" + name, bytes);
  files.Put("/s/other", {});
  const auto spool = Spool::Open(
      files, {.directory = "/s", .max_disk_bytes = kMaxDiskBytes, .max_memory_bytes = 0});
  if (!spool.ok()) {
    Require(absl::IsUnimplemented(spool.status()));
    return;
  }
  const auto check = [&] {
    const uint64_t on_disk = files.BytesBelow("/s");
    Require(on_disk <= kMaxDiskBytes && (*spool)->stats().disk_bytes == on_disk);
  };
  check();
  for (const StreamId& stream : (*spool)->streams()) {
    Walk(**spool, stream);
    const uint64_t next = (*spool)->range(stream).next_sequence;
    const std::array<uint8_t, 50> payload{};
    const auto chunk = Chunk(stream, next, 5, payload);
    const auto header = vcpulse::timeline::DecodeChunkHeader(chunk);
    if (header.ok()) (*spool)->Add(*header, chunk);
    Walk(**spool, stream);
    check();
    (*spool)->Acknowledge(stream, next);
    Walk(**spool, stream);
    check();
  }
}

void RecoverStore(const std::map<std::string, std::vector<uint8_t>>& contents) {
  CrashingFiles files;
  for (const auto& [name, bytes] : contents) files.Put("/c/a/20260101T000000Z-" + name, bytes);
  for (uint8_t number = 0; number < 3; ++number) {
    const StreamId stream = StreamOf(number);
    const std::string folder = StreamFolders(files, "/c").FolderOf("a", stream, 0).value();
    // The agent holds all of it, or nothing.
    const uint64_t first_held = number < 2 ? 1 : std::numeric_limits<uint64_t>::max();
    const auto store = StreamStore::Open(files, folder, stream, {}, first_held, 0);
    if (!store.ok()) {
      Require(absl::IsUnimplemented(store.status()));
      continue;
    }
    const uint64_t durable = (*store)->durable();
    if (durable >= std::numeric_limits<uint64_t>::max() - 10) continue;
    const std::array<uint8_t, 50> payload{};
    const auto chunk = Chunk(stream, durable + 1, 5, payload);
    const auto header = vcpulse::timeline::DecodeChunkHeader(chunk);
    Require(header.ok() && (*store)->Append(*header, chunk, 0).ok() && (*store)->Sync().ok());
    const auto again = StreamStore::Open(files, folder, stream, {}, first_held, 0);
    Require(again.ok() && (*again)->durable() == durable + 5);
    Require(number == 2 || (*again)->notice().empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto contents = FilesOf({data, size});
  RecoverSpool(contents);
  RecoverStore(contents);
  return 0;
}

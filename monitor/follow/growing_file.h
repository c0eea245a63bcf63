#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/base/fd.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/chunk_scanner.h"

namespace vcpulse::follow {

// A timeline that somebody else appends to, read chunk by chunk as they become whole. It holds no
// descriptor between two calls. One thread.
class GrowingFile {
 public:
  using Sink = std::function<absl::Status(std::span<const uint8_t> chunk)>;

  // Reads from `offset` on, where a chunk begins (or will).
  explicit GrowingFile(std::string path, uint64_t offset = 0)
      : path_(std::move(path)), offset_(offset) {}

  // Hands over the whole chunks that came since the last call; one that is not whole yet waits for
  // the next. What is damaged is passed over, up to the next whole chunk. Another file under this
  // name is read from its beginning. Errors: those of opening and reading, naming the file;
  // Unimplemented for chunks of a later release; those of `sink`.
  absl::Status ReadNew(const Sink& sink);

  // The same of headers alone: where each chunk begins, and its header. Of a payload only the
  // length is looked at.
  using PlaceSink = std::function<void(uint64_t offset, const timeline::ChunkHeader& header)>;
  absl::Status ListNew(const PlaceSink& sink);

  // Whether it may be a timeline: it begins as one, as far as there is anything. Errors:
  // InvalidArgument where it does not; those of opening and reading. Each naming the file.
  absl::Status CheckBeginning() const;

  // Where whole chunks begin from the beginning up to the end, and that end. Payloads are not read.
  struct Places {
    std::vector<uint64_t> chunks;
    uint64_t end = 0;
  };
  absl::StatusOr<Places> ListChunks() const;
  // The whole chunk that begins there.
  absl::StatusOr<std::vector<uint8_t>> ReadChunk(uint64_t offset) const;

  // Bytes that were passed over, as they are no chunk.
  uint64_t damaged_bytes() const { return damaged_bytes_; }
  const std::string& path() const { return path_; }
  // How often another file was found under the name: places of the ones before are of no use.
  uint64_t replaced() const { return replaced_; }

 private:
  // Passes over one chunk at offset_, which lies in a file of `size` bytes. Errors: OutOfRange: not
  // whole yet, DataLoss: damaged, others end the reading.
  using TakeNext = std::function<absl::Status(const Fd& fd, uint64_t size)>;
  // Calls it until nothing more is whole.
  absl::Status TakeNew(const TakeNext& take_next);
  // The whole chunk at offset_, into chunk_. OutOfRange: not whole yet, DataLoss: damaged.
  absl::Status ReadNext(const Fd& fd);
  // Goes on at the next chunk after damage at offset_. False where none has come yet.
  absl::StatusOr<bool> PassOverDamage(const Fd& fd);

  std::string path_;
  uint64_t offset_;
  ino_t inode_ = 0;          // of the file that offset_ is of; 0: not seen so far
  uint64_t seen_bytes_ = 0;  // its size when it was last read to the end of what is whole
  uint64_t damaged_bytes_ = 0;
  uint64_t replaced_ = 0;
  uint64_t searched_ = 0;  // no chunk begins behind offset_ before it
  timeline::VainReading vain_;
  std::vector<uint8_t> chunk_;
};

}  // namespace vcpulse::follow

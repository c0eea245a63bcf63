#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace vcpulse::timeline {

// Bytes that can be read at an offset: a file, a pipe (within a window) or memory.
struct Damage;

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills `out` from `offset` on and gives the number of bytes read: less than out.size() only at
  // the end. Errors: of read(2).
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) = 0;
  // Nothing before `offset` will be read any more.
  virtual void Forget(uint64_t offset) = 0;
  // Damage of what the bytes were made of, which they no longer hold.
  virtual std::vector<Damage> Skipped() const;
};

// A file for reading; "-" is standard input. What cannot be read at an offset is read as it comes.
// Of a directory, the files NAME.vpt in it, one behind the other in the order of their names: what
// a collector keeps of a stream. It may go on growing while it is read. Errors: of open(2),
// InvalidArgument for a directory without such files; all name the file.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path);

// Bytes in memory, which must outlive the source.
std::unique_ptr<ByteSource> NewMemorySource(std::span<const uint8_t> bytes);

}  // namespace vcpulse::timeline

#pragma once

// Bytes of a connection for the fuzz targets of streaming.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "monitor/stream/protocol/frame.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::stream {

inline void Put32(uint32_t value, uint8_t* at) {
  for (size_t i = 0; i < 4; ++i) at[i] = static_cast<uint8_t>(value >> (8 * i));
}

// Makes the checksums right of whatever stands where frames would stand; a length that leads beyond
// the end is made to end there.
inline void MendFrames(std::vector<uint8_t>& bytes) {
  size_t at = 0;
  while (bytes.size() - at >= kFrameHeadBytes) {
    uint8_t* head = bytes.data() + at;
    const size_t rest = bytes.size() - at - kFrameHeadBytes;
    const size_t wanted = size_t{head[8]} | size_t{head[9]} << 8;
    const size_t length = std::min(wanted, rest);
    std::ranges::copy(kFrameMagic, head);
    Put32(static_cast<uint32_t>(length), head + 8);
    Put32(timeline::Crc32c({head + kFrameHeadBytes, length}), head + 12);
    Put32(timeline::Crc32c({head, 16}), head + 16);
    at += kFrameHeadBytes + length;
  }
}

// Hands out an input piece by piece.
class Input {
 public:
  explicit Input(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  // A length of two bytes, the higher one first.
  size_t Length() {
    const size_t high = Byte();
    return high << 8 | Byte();
  }
  // A number of one to eight bytes; the first says how many.
  uint64_t Number() {
    uint64_t number = 0;
    for (size_t bytes = Byte() % 8 + 1; bytes > 0; --bytes) number = number << 8 | Byte();
    return number;
  }
  // At most `length` bytes.
  std::span<const uint8_t> Take(size_t length) {
    const auto taken = bytes_.first(std::min(length, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace vcpulse::stream

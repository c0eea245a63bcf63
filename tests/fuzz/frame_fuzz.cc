// The cutter of frames. The input's first byte says how the rest is cut before it is fed, the
// second whether heads and CRCs are made right first (so that payloads are reached).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "monitor/stream/protocol/frame.h"
#include "tests/fuzz/stream_bytes.h"

namespace vcpulse::stream {
namespace {

constexpr uint32_t kCap = 4096;

struct Read {
  std::vector<std::vector<uint8_t>> payloads;
  bool failed = false;

  bool operator==(const Read&) const = default;
};

Read ReadIn(std::span<const uint8_t> bytes, size_t step) {
  FrameReader reader(kCap);
  Read read;
  for (size_t at = 0; at < bytes.size() && !read.failed; at += step) {
    reader.Feed(bytes.subspan(at, std::min(step, bytes.size() - at)));
    while (true) {
      const auto frame = reader.Next();
      read.failed = !frame.ok();
      if (read.failed || !frame->has_value()) break;
      if ((*frame)->payload.size() > kCap) std::abort();
      read.payloads.emplace_back((*frame)->payload.begin(), (*frame)->payload.end());
    }
    // Never more than one frame.
    if (!read.failed && reader.buffered() >= kCap + kFrameHeadBytes) std::abort();
    if (!read.failed && reader.IsInsideFrame() != (reader.buffered() > 0)) std::abort();
  }
  // Once of no use, always of no use.
  if (read.failed && reader.Next().ok()) std::abort();
  return read;
}

}  // namespace
}  // namespace vcpulse::stream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vcpulse::stream;
  if (size < 2) return 0;
  const size_t step = size_t{data[0]} + 1;
  std::vector<uint8_t> bytes(data + 2, data + size);
  if (data[1] % 2 == 1) MendFrames(bytes);
  // However it is cut, the same frames come.
  if (ReadIn(bytes, step) != ReadIn(bytes, bytes.size() + 1)) std::abort();
  return 0;
}

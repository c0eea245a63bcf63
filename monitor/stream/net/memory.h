#pragma once

// Of the collector: what its memory may be used for. Only .cc files of this module include this.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace vcpulse::stream {

// Bytes that are held now. Shared with whatever holds them, which may outlive the collector.
struct Buffered {
  std::atomic<uint64_t> connections = 0;  // their buffers, unfinished frames, answers
  std::atomic<uint64_t> frames = 0;       // on their way to followers, once each; their queues
};

// Frames that several followers are sent.
using SharedFrames = std::shared_ptr<const std::vector<uint8_t>>;

// How the budget is shared out. The process itself takes 8 MiB, of a small budget an eighth. Of the
// rest connections have 1/2, what waits for the disk and frames for followers 1/8 each; what is
// left is for stacks and what the allocator keeps.
class MemoryShares {
 public:
  explicit MemoryShares(uint64_t budget)
      : budget_(budget), shared_(budget - std::min<uint64_t>(budget / 8, kProcess)) {}

  uint64_t connections() const { return shared_ / 2; }
  uint64_t frames() const { return shared_ / 8; }
  uint64_t pending() const { return std::min<uint64_t>(shared_ / 8, kMostPending); }
  // Of one follower, before it is too slow.
  uint64_t behind() const { return std::min<uint64_t>(frames() / 2, kMostBehind); }
  // So many connections fit when each is idle, with room for unfinished frames.
  size_t most_connections() const { return budget_ / 8 * 3 / kIdleConnection; }

  static constexpr uint64_t kIdleConnection = 24 << 10;

 private:
  static constexpr uint64_t kProcess = 8 << 20;
  static constexpr uint64_t kMostPending = 64 << 20;
  static constexpr uint64_t kMostBehind = 16 << 20;

  uint64_t budget_;
  uint64_t shared_;
};

}  // namespace vcpulse::stream

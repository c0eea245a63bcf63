#pragma once

// monitor/stream/protocol is what agent and collector say to each other, as pure state machines:
// bytes in, events and bytes out. It does no I/O and reads no clock; time comes in as nanoseconds
// of a monotonic clock.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"

namespace vcpulse::stream {

enum class FrameType : uint8_t {
  kHello = 1,
  kWelcome = 2,
  kChunk = 3,  // the payload is a chunk of timeline::ChunkHeader, header and payload
  kAck = 4,
  kGap = 5,  // v1::LostRecords
  kPing = 6,
  kError = 7,
  kStreamInfo = 8,
};

// The head of a frame, little-endian: magic "\x89VPS", type, flags, two bytes of 0, length of the
// payload (32 bits), CRC-32C of the payload, CRC-32C of the 16 bytes before it.
inline constexpr size_t kFrameHeadBytes = 20;
inline constexpr std::array<uint8_t, 4> kFrameMagic = {0x89, 'V', 'P', 'S'};
// A receiver that does not know the type of such a frame must refuse it.
inline constexpr uint8_t kFlagCritical = 1;

inline constexpr uint32_t kMaxFrameBytes = 1u << 20;  // of a payload
// What an agent sends as one chunk at most, a longer one in pieces: a frame would take more, a
// message of a broker has headers too (at most 847 bytes, docs/fleet.md#what-is-published).
inline constexpr uint32_t kMaxChunkBytes = kMaxFrameBytes - 1024;
inline constexpr uint32_t kMaxHandshakeFrameBytes = 64u << 10;  // before Welcome

// Appends one frame to `out`. `payload` at most kMaxFrameBytes, or it is a bug (CHECK).
void AppendFrame(FrameType type, std::span<const uint8_t> payload, std::vector<uint8_t>& out);
void AppendFrame(FrameType type, const google::protobuf::MessageLite& message,
                 std::vector<uint8_t>& out);

struct Frame {
  uint8_t type = 0;  // a FrameType, or one that this release does not know
  uint8_t flags = 0;
  std::span<const uint8_t> payload;  // valid until the next call of the reader
};

// The message of a frame; what this release does not know of it is dropped, so that it takes no
// memory later. False where it is none, or longer than kMaxHandshakeFrameBytes.
bool ParseMessage(const Frame& frame, google::protobuf::Message* message);

// What becomes of a frame that a collector sent and that has no place where it came. Errors:
// DataLoss; Unimplemented for a critical one of an unknown type, of which others are passed over.
absl::Status PassOver(const Frame& frame);

// Cuts bytes into frames as they come. Memory: at most one frame of max_bytes, taken as its bytes
// arrive, so a peer that announces much and sends little costs little.
class FrameReader {
 public:
  explicit FrameReader(uint32_t max_bytes) : max_bytes_(max_bytes) {}

  void set_max_bytes(uint32_t max_bytes) { max_bytes_ = max_bytes; }

  // Bytes from the peer; kept until they are taken as frames.
  void Feed(std::span<const uint8_t> bytes);
  // The next whole frame, or nothing until more is fed. DataLoss, with words for people, for what
  // is no frame, for one that is longer than max_bytes (before memory is taken for it) or whose CRC
  // is wrong: then the connection is of no more use, and each further call says so again.
  absl::StatusOr<std::optional<Frame>> Next();
  // Whether a frame has begun and not ended.
  bool IsInsideFrame() const;
  // Bytes kept.
  size_t buffered() const { return buffer_.size() - taken_; }
  size_t memory() const { return buffer_.capacity(); }  // bytes

 private:
  void DropTaken();
  absl::Status CheckHead(std::span<const uint8_t> bytes) const;

  uint32_t max_bytes_;
  std::vector<uint8_t> buffer_;
  size_t taken_ = 0;  // of buffer_, by frames that were handed out
  absl::Status failed_;
};

}  // namespace vcpulse::stream

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/stream/protocol/frame.h"
#include "monitor/timeline/chunk_header.h"
#include "vcpulse/v1/stream.pb.h"

namespace vcpulse::stream {

// What a collector allows one connection.
struct SessionLimits {
  int64_t handshake_ns = 5'000'000'000;  // from the connection to a whole Hello
  int64_t frame_ns = 30'000'000'000;     // from a frame's first byte to its last
  // A frame that has begun must come at this rate from its fifth second on.
  uint64_t min_bytes_per_second = 1024;
  int64_t idle_ns = 60'000'000'000;        // without a whole frame
  int64_t ping_after_ns = 20'000'000'000;  // of silence of the peer
  uint64_t credit_bytes = 4u << 20;
  uint64_t max_bytes_per_second = 0;  // 0: no limit. Told to the agent; its owner enforces it.
};

// The collector's side of one connection. Pure, like AgentSession: the owner feeds bytes and time,
// drains output(), stores what `Events` hands it, and calls Welcome, Ack or Refuse. Any error ends
// it: what is in output() then (an Error frame for the peer) is sent if it can be, and the
// connection is closed. One thread.
class CollectorSession {
 public:
  // Called during Receive. An error that one of them returns ends the session like any other.
  struct Events {
    // A whole, well-formed Hello of a version that is spoken. The owner answers with Welcome or
    // Refuse, now or later; no chunk is taken before (one that comes is an error).
    std::function<absl::Status(const v1::Hello&)> hello;
    // The next chunk: its header and CRCs are good, it belongs to the stream of the Hello, begins
    // at the next sequence, and neither its stored nor its declared size is beyond the caps (the
    // zstd frame must declare the same size as the header). `bytes` are valid during the call.
    std::function<absl::Status(const timeline::ChunkHeader&, std::span<const uint8_t> bytes)> chunk;
    // Records from the next sequence on that will not come.
    std::function<absl::Status(const v1::LostRecords&)> gap;
    // The peer's clocks, with Hello and each Ping.
    std::function<void(const v1::ClockSnapshot&)> clock;
  };

  CollectorSession(const SessionLimits& limits, Events events, int64_t now_ns);

  // Bytes of the peer. Errors, for the log, in one line: DataLoss for what is no frame or may not
  // come here, Unimplemented for another major version, OutOfRange for a wrong sequence; those of
  // the events, under the code that refusal.h has for them unless Refuse was called. An Error frame
  // with the reason is in output(). Unavailable, without one, for a peer that said why it closes.
  // Each later call says so again; after Refuse all bytes are passed over.
  absl::Status Receive(std::span<const uint8_t> bytes, int64_t now_ns);
  // Time passes: pings, and DeadlineExceeded for a peer that is too slow or silent. Called at least
  // each second.
  absl::Status Tick(const v1::ClockSnapshot& clock, int64_t now_ns);
  // The owner itself did not read for so long (to slow a fast sender down): that is not the peer's
  // slowness.
  void Excuse(int64_t duration_ns);

  // Answers Hello: records up to `durable` need not be sent again.
  void Welcome(uint64_t durable, const std::string& tool_version, const std::string& host_name);
  // Records up to `durable` are synced. Does nothing unless it is more than was acknowledged.
  void Ack(uint64_t durable);
  // Puts an Error frame into output(); the owner closes once it is sent. Only the first one counts.
  void Refuse(v1::Error::Code code, const std::string& reason);
  // To a follower, once welcomed; the owner sends it the frames of chunks itself.
  void SendStreamInfo(const v1::StreamInfo& info);

  bool welcomed() const { return welcomed_; }
  // Chunks and gaps that were received before and were passed over.
  uint64_t duplicates() const { return duplicates_; }
  // The last sequence that was received: a chunk's or a gap's.
  uint64_t received() const { return next_ - 1; }
  std::vector<uint8_t>& output() { return output_; }
  // Nothing is received any more: gives back the memory of an unfinished frame.
  void DropInput() { frames_ = FrameReader(0); }
  // Bytes of an unfinished frame and of output().
  size_t memory() const { return frames_.memory() + output_.capacity(); }

 private:
  absl::Status Take(const Frame& frame);
  absl::Status TakeHello(const Frame& frame);
  absl::Status TakeChunk(const Frame& frame);
  absl::Status TakeGap(const Frame& frame);
  absl::Status TakePing(const Frame& frame);
  absl::Status TakeError(const Frame& frame);
  absl::Status TakeFrames(int64_t now_ns);
  // Where a chunk or gap of first to last belongs: true where it is the next, false where it was
  // received already.
  absl::StatusOr<bool> IsNext(uint64_t first, uint64_t last);
  void AnswerPing();
  void SendAck();
  absl::Status CheckFrameRate(int64_t now_ns) const;
  bool MayReceiveChunks() const;
  // Notes why for the peer, and gives `status` back.
  absl::Status Fail(absl::Status status);

  SessionLimits limits_;
  Events events_;
  FrameReader frames_{kMaxHandshakeFrameBytes};
  std::vector<uint8_t> output_;
  std::optional<v1::Hello> hello_;
  bool welcomed_ = false;
  bool refused_ = false;
  timeline::StreamId stream_id_{};
  uint64_t next_ = 1;
  uint64_t acknowledged_ = 0;
  uint64_t duplicates_ = 0;
  uint64_t nonce_ = 0;
  int64_t begun_ns_ = 0;
  int64_t heard_ns_ = 0;  // the last whole frame
  int64_t pinged_ns_ = 0;
  std::optional<int64_t> frame_begun_ns_;
  std::optional<uint64_t> asked_;  // a ping that is not answered yet
  bool repeat_ack_ = false;        // a duplicate came
  absl::Status ended_;             // the error that was returned
};

}  // namespace vcpulse::stream

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "monitor/stream/protocol/frame.h"
#include "monitor/stream/protocol/hello.h"
#include "vcpulse/v1/stream.pb.h"

namespace vcpulse::stream {

// A follower's side of one connection, to which a collector sends on what agents send it. Pure,
// like AgentSession: constructed when the connection stands (Hello is in output() at once); the
// owner feeds bytes and time and drains output(). Any error ends it. One thread.
class FollowerSession {
 public:
  // Called during Receive.
  struct Events {
    // The collector lets it follow: before the first chunk.
    std::function<void()> welcomed;
    // A whole chunk as its agent sent it, with whose it is. Of it only the header was looked at;
    // what is missing between two chunks of a stream is for the owner to tell. An error ends the
    // session.
    std::function<absl::Status(const v1::StreamInfo&, std::span<const uint8_t> chunk)> chunk;
  };

  static constexpr int64_t kWelcomeDeadline_ns = 10'000'000'000;
  static constexpr int64_t kGiveUpAfter_ns = 60'000'000'000;  // of silence; it pings after 20 s
  // Streams that are known at a time. Beyond it the one that had no chunk for longest is forgotten,
  // and a chunk of it then ends the session: the next session gets it again.
  static constexpr size_t kMostStreams = 10'000;

  // Follows the streams of `agent_id`; where that is empty, all that it may see.
  FollowerSession(const AgentIdentity& identity, const std::string& agent_id, Events events,
                  const v1::ClockSnapshot& clock, int64_t now_ns);

  // Bytes from the collector. Errors: DataLoss for what is no frame or may not come here;
  // Unimplemented for another version; with the collector's own words PermissionDenied where
  // somebody must change something first, else Unavailable; those of Events::chunk. Each later call
  // says so again.
  absl::Status Receive(std::span<const uint8_t> bytes, int64_t now_ns);
  // Time passes: DeadlineExceeded where the collector is silent. Called at least each second.
  absl::Status Tick(const v1::ClockSnapshot& clock, int64_t now_ns);

  bool welcomed() const { return welcomed_; }
  // Whether another connection would end likewise, until somebody changes something.
  bool needs_people() const {
    return absl::IsUnimplemented(ended_) || absl::IsPermissionDenied(ended_);
  }
  // What is to be sent; the owner takes it (swap or clear).
  std::vector<uint8_t>& output() { return output_; }

 private:
  absl::Status TakeFrames();
  absl::Status Take(const Frame& frame);
  absl::Status TakeWelcome(const Frame& frame);
  absl::Status TakeChunk(const Frame& frame);
  absl::Status TakeInfo(const Frame& frame);
  absl::Status TakePing(const Frame& frame);
  absl::Status TakeError(const Frame& frame);
  void AnswerPing();

  Events events_;
  FrameReader frames_{kMaxHandshakeFrameBytes};
  std::vector<uint8_t> output_;
  struct Told {
    v1::StreamInfo info;
    uint64_t used = 0;  // when its StreamInfo or a chunk came last, in frames
  };
  std::map<std::string, Told> streams_;  // by id
  uint64_t frames_taken_ = 0;
  v1::ClockSnapshot clock_;
  bool welcomed_ = false;
  int64_t begun_ns_ = 0;
  int64_t heard_ns_ = 0;
  std::optional<uint64_t> asked_;  // a ping that is not answered yet
  absl::Status ended_;             // the error that was returned
};

}  // namespace vcpulse::stream

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "monitor/stream/protocol/frame.h"
#include "monitor/stream/protocol/hello.h"
#include "monitor/timeline/chunk_header.h"
#include "vcpulse/v1/stream.pb.h"

namespace vcpulse::stream {

// The agent's side of one connection. Pure: what is to be sent is appended to output(), which the
// owner drains into its socket; time is given to it. One thread.
//
// Life: constructed when the connection stands (Hello is in output() at once); Receive with what
// comes; once welcomed(), SendChunk/SendGap in sequence from durable()+1 on as MaySend allows; Tick
// at least each second. Any error ends it: the owner closes the connection.
class AgentSession {
 public:
  // The stream that is sent, and what is held of it: records first_sequence to next_sequence - 1.
  struct Held {
    timeline::StreamId stream_id{};
    uint64_t first_sequence = 1;
    uint64_t next_sequence = 1;
    // The last record that was ever sent, over any connection. A collector that claims a later one
    // is refused: somebody else sends under this stream's id. Nothing: it is not known, as the
    // stream is replayed, or was found in a spool after a crash of the machine.
    std::optional<uint64_t> last_sent{};
    std::optional<int64_t> start_realtime_ns{};  // when the stream began, since 1970
  };

  static constexpr int64_t kWelcomeDeadline_ns = 25'000'000'000;
  static constexpr int64_t kPingAfter_ns = 10'000'000'000;    // of silence of either side
  static constexpr int64_t kGiveUpAfter_ns = 30'000'000'000;  // of silence of the collector
  // Of records that were sent and none that was acknowledged.
  static constexpr int64_t kAckDeadline_ns = 30'000'000'000;

  AgentSession(const AgentIdentity& identity, const Held& held, const v1::ClockSnapshot& clock,
               int64_t now_ns);

  // Bytes from the collector. Errors: DataLoss for what is no frame or may not come here;
  // Unavailable with the collector's own words where it refused (refusal() has the code);
  // Unimplemented for a Welcome of another major version; AlreadyExists for one that has more of
  // the stream than was ever sent (Held). Each later call says so again.
  absl::Status Receive(std::span<const uint8_t> bytes, int64_t now_ns);
  // Time passes: pings, and DeadlineExceeded in words where the collector is silent,
  // or acknowledges nothing of what it was sent (acknowledges_nothing()).
  absl::Status Tick(const v1::ClockSnapshot& clock, int64_t now_ns);

  bool welcomed() const { return welcome_.has_value(); }
  const v1::Welcome& welcome() const { return *welcome_; }
  // Records up to it are safe at the collector. 0 before Welcome.
  uint64_t durable() const { return durable_; }
  // The sequence with which the next chunk or gap must begin; valid once welcomed.
  uint64_t next_to_send() const { return next_; }
  bool acknowledges_nothing() const { return acknowledges_nothing_; }
  const std::optional<v1::Error>& refusal() const { return refusal_; }

  // Whether credit is left for a chunk of so many bytes: bytes under way and not acknowledged stay
  // within the credit, but one chunk may always be. False before Welcome.
  bool MaySend(size_t chunk_bytes) const;
  // `header.first_sequence` is next_to_send(), and the chunk fits max_frame_bytes (CHECK).
  void SendChunk(const timeline::ChunkHeader& header, std::span<const uint8_t> chunk,
                 int64_t now_ns);
  // Begins at next_to_send() (CHECK).
  void SendGap(const v1::LostRecords& lost, int64_t now_ns);

  // What is to be sent; the owner takes it (swap or clear).
  std::vector<uint8_t>& output() { return output_; }

 private:
  struct UnderWay {
    uint64_t last_sequence = 0;
    size_t bytes = 0;
  };

  absl::Status Take(const Frame& frame, int64_t now_ns);
  absl::Status TakeWelcome(const Frame& frame);
  absl::Status TakeAck(const Frame& frame, int64_t now_ns);
  absl::Status TakePing(const Frame& frame);
  absl::Status TakeError(const Frame& frame);
  void AnswerPing(int64_t now_ns);
  // Records up to `last` were sent.
  void NoteSent(uint64_t last, int64_t now_ns);
  // Notes why for the collector, and gives `status` back.
  absl::Status Fail(absl::Status status);
  void Send(FrameType type, const google::protobuf::MessageLite& message, int64_t now_ns);

  Held held_;
  FrameReader frames_{kMaxHandshakeFrameBytes};
  std::vector<uint8_t> output_;
  std::optional<v1::Welcome> welcome_;
  std::optional<v1::Error> refusal_;
  v1::ClockSnapshot clock_;
  uint64_t durable_ = 0;
  uint64_t next_ = 0;
  std::deque<UnderWay> under_way_;  // by rising sequence
  size_t bytes_under_way_ = 0;
  uint64_t nonce_ = 0;
  int64_t begun_ns_ = 0;
  int64_t heard_ns_ = 0;
  int64_t sent_ns_ = 0;
  int64_t pinged_ns_ = 0;
  int64_t progress_ns_ = 0;  // when it last acknowledged something, or had nothing to acknowledge
  bool acknowledges_nothing_ = false;
  std::optional<uint64_t> asked_;  // a ping that is not answered yet
  absl::Status ended_;             // the error that was returned
};

}  // namespace vcpulse::stream

#include "monitor/stream/protocol/agent_session.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "monitor/core/check.h"
#include "monitor/stream/protocol/refusal.h"

namespace vcpulse::stream {

AgentSession::AgentSession(const AgentIdentity& identity, const Held& held,
                           const v1::ClockSnapshot& clock, int64_t now_ns)
    : held_(held),
      clock_(clock),
      begun_ns_(now_ns),
      heard_ns_(now_ns),
      sent_ns_(now_ns),
      pinged_ns_(now_ns) {
  VCPULSE_CHECK(
      held.first_sequence >= 1 && held.next_sequence >= held.first_sequence,
      absl::StrCat("records ", held.first_sequence, " up to before ", held.next_sequence));
  v1::Hello hello = HelloOf(identity, v1::Hello::ROLE_AGENT, clock);
  hello.set_stream_id(held.stream_id.data(), held.stream_id.size());
  hello.set_first_sequence(held.first_sequence);
  hello.set_next_sequence(held.next_sequence);
  if (held.start_realtime_ns) hello.set_start_realtime_ns(*held.start_realtime_ns);
  Send(FrameType::kHello, hello, now_ns);
}

absl::Status AgentSession::Receive(std::span<const uint8_t> bytes, int64_t now_ns) {
  if (!ended_.ok()) return ended_;
  frames_.Feed(bytes);
  while (true) {
    const absl::StatusOr<std::optional<Frame>> frame = frames_.Next();
    if (!frame.ok()) return Fail(frame.status());
    if (!frame->has_value()) break;
    heard_ns_ = now_ns;
    if (absl::Status status = Take(**frame, now_ns); !status.ok()) return Fail(std::move(status));
  }
  if (asked_) AnswerPing(now_ns);
  return absl::OkStatus();
}

absl::Status AgentSession::Take(const Frame& frame, int64_t now_ns) {
  const auto type = static_cast<FrameType>(frame.type);
  if (type == FrameType::kError) return TakeError(frame);
  if (!welcomed()) {
    return type == FrameType::kWelcome ? TakeWelcome(frame) : PassOver(frame);
  }
  if (type == FrameType::kAck) return TakeAck(frame, now_ns);
  return type == FrameType::kPing ? TakePing(frame) : PassOver(frame);
}

absl::Status AgentSession::TakeWelcome(const Frame& frame) {
  v1::Welcome welcome;
  if (!ParseMessage(frame, &welcome)) return absl::DataLossError("the collector's Welcome is none");
  if (absl::Status status = CheckWelcome(welcome, held_.last_sent); !status.ok()) return status;
  // No frame of ours is longer, whatever the collector would take.
  welcome.set_max_frame_bytes(std::min(welcome.max_frame_bytes(), kMaxFrameBytes));
  durable_ = welcome.durable_sequence();
  next_ = durable_ + 1;
  welcome_ = welcome;  // a copy, without the memory that unknown fields have taken
  frames_.set_max_bytes(kMaxFrameBytes);
  return absl::OkStatus();
}

absl::Status AgentSession::TakeAck(const Frame& frame, int64_t now_ns) {
  v1::Ack ack;
  if (!ParseMessage(frame, &ack)) return absl::DataLossError("the collector's Ack is none");
  if (ack.durable_sequence() >= next_) {
    return absl::DataLossError(absl::StrCat("the collector acknowledges record ",
                                            ack.durable_sequence(), ", sent were those up to ",
                                            next_ - 1));
  }
  if (ack.durable_sequence() < durable_) {
    return absl::DataLossError(absl::StrCat("the collector acknowledges record ",
                                            ack.durable_sequence(), " after record ", durable_));
  }
  if (ack.durable_sequence() > durable_) progress_ns_ = now_ns;
  durable_ = ack.durable_sequence();
  while (!under_way_.empty() && under_way_.front().last_sequence <= durable_) {
    bytes_under_way_ -= under_way_.front().bytes;
    under_way_.pop_front();
  }
  return absl::OkStatus();
}

absl::Status AgentSession::TakePing(const Frame& frame) {
  v1::Ping ping;
  if (!ParseMessage(frame, &ping)) return absl::DataLossError("the collector's Ping is none");
  if (!ping.is_answer()) asked_ = ping.nonce();
  return absl::OkStatus();
}

absl::Status AgentSession::TakeError(const Frame& frame) {
  v1::Error error;
  if (!ParseMessage(frame, &error)) return absl::DataLossError("the collector's Error is none");
  refusal_ = error;
  return absl::UnavailableError(absl::StrCat("the collector says: ", WordsOf(*refusal_)));
}

// One answer for all that asked in one go: whoever asks a thousand times fills no memory.
void AgentSession::AnswerPing(int64_t now_ns) {
  v1::Ping answer;
  answer.set_nonce(*std::exchange(asked_, std::nullopt));
  answer.set_is_answer(true);
  *answer.mutable_clock() = clock_;
  Send(FrameType::kPing, answer, now_ns);
}

absl::Status AgentSession::Tick(const v1::ClockSnapshot& clock, int64_t now_ns) {
  if (!ended_.ok()) return ended_;
  clock_ = clock;
  if (!welcomed()) {
    if (now_ns - begun_ns_ < kWelcomeDeadline_ns) return absl::OkStatus();
    return Fail(absl::DeadlineExceededError(absl::StrCat(
        "the collector has not answered for ", kWelcomeDeadline_ns / kNsPerSecond, " s")));
  }
  if (now_ns - heard_ns_ >= kGiveUpAfter_ns) {
    return Fail(absl::DeadlineExceededError(
        absl::StrCat("the collector has been silent for ", kGiveUpAfter_ns / kNsPerSecond, " s")));
  }
  if (next_ > durable_ + 1 && now_ns - progress_ns_ >= kAckDeadline_ns) {
    acknowledges_nothing_ = true;
    return Fail(absl::DeadlineExceededError(absl::StrCat(
        "the collector has acknowledged nothing for ", kAckDeadline_ns / kNsPerSecond, " s")));
  }
  const int64_t silent_since_ns = std::min(heard_ns_, sent_ns_);
  if (now_ns - std::max(silent_since_ns, pinged_ns_) < kPingAfter_ns) return absl::OkStatus();
  v1::Ping ping;
  ping.set_nonce(++nonce_);
  *ping.mutable_clock() = clock;
  Send(FrameType::kPing, ping, now_ns);
  pinged_ns_ = now_ns;
  return absl::OkStatus();
}

bool AgentSession::MaySend(size_t chunk_bytes) const {
  if (!welcomed() || !ended_.ok()) return false;
  // In this order it cannot overflow.
  return under_way_.empty() || (bytes_under_way_ <= welcome_->credit_bytes() &&
                                chunk_bytes <= welcome_->credit_bytes() - bytes_under_way_);
}

void AgentSession::SendChunk(const timeline::ChunkHeader& header, std::span<const uint8_t> chunk,
                             int64_t now_ns) {
  VCPULSE_CHECK(welcomed() && header.first_sequence == next_, "not the next chunk");
  VCPULSE_CHECK(header.last_sequence >= header.first_sequence &&
                    header.last_sequence < std::numeric_limits<uint64_t>::max(),
                "a chunk without records");
  VCPULSE_CHECK(chunk.size() <= welcome_->max_frame_bytes(), "a chunk larger than a frame may be");
  AppendFrame(FrameType::kChunk, chunk, output_);
  NoteSent(header.last_sequence, now_ns);
  under_way_.push_back({.last_sequence = header.last_sequence, .bytes = chunk.size()});
  bytes_under_way_ += chunk.size();
  sent_ns_ = now_ns;
}

void AgentSession::SendGap(const v1::LostRecords& lost, int64_t now_ns) {
  VCPULSE_CHECK(welcomed() && lost.first_sequence() == next_, "not the next gap");
  VCPULSE_CHECK(lost.last_sequence() >= lost.first_sequence() &&
                    lost.last_sequence() < std::numeric_limits<uint64_t>::max(),
                "a gap of nothing");
  Send(FrameType::kGap, lost, now_ns);
  NoteSent(lost.last_sequence(), now_ns);
}

void AgentSession::NoteSent(uint64_t last, int64_t now_ns) {
  if (next_ == durable_ + 1) progress_ns_ = now_ns;
  next_ = last + 1;
}

void AgentSession::Send(FrameType type, const google::protobuf::MessageLite& message,
                        int64_t now_ns) {
  AppendFrame(type, message, output_);
  sent_ns_ = now_ns;
}

absl::Status AgentSession::Fail(absl::Status status) {
  // Nobody argues with a refusal.
  if (!refusal_) AppendError(CodeFor(status), std::string(status.message()), output_);
  ended_ = status;
  return status;
}

}  // namespace vcpulse::stream

#include "monitor/stream/protocol/follower_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/stream/protocol/refusal.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::stream {

FollowerSession::FollowerSession(const AgentIdentity& identity, const std::string& agent_id,
                                 Events events, const v1::ClockSnapshot& clock, int64_t now_ns)
    : events_(std::move(events)), clock_(clock), begun_ns_(now_ns), heard_ns_(now_ns) {
  v1::Hello hello = HelloOf(identity, v1::Hello::ROLE_FOLLOWER, clock);
  hello.set_follow_agent_id(agent_id);
  AppendFrame(FrameType::kHello, hello, output_);
}

absl::Status FollowerSession::Receive(std::span<const uint8_t> bytes, int64_t now_ns) {
  if (!ended_.ok()) return ended_;
  frames_.Feed(bytes);
  heard_ns_ = now_ns;
  ended_ = TakeFrames();
  if (ended_.ok() && asked_) AnswerPing();
  return ended_;
}

absl::Status FollowerSession::TakeFrames() {
  while (true) {
    const absl::StatusOr<std::optional<Frame>> frame = frames_.Next();
    if (!frame.ok()) return frame.status();
    if (!frame->has_value()) return absl::OkStatus();
    if (absl::Status status = Take(**frame); !status.ok()) return status;
  }
}

absl::Status FollowerSession::Take(const Frame& frame) {
  const auto type = static_cast<FrameType>(frame.type);
  if (type == FrameType::kError) return TakeError(frame);
  if (!welcomed_) return type == FrameType::kWelcome ? TakeWelcome(frame) : PassOver(frame);
  switch (type) {
    case FrameType::kChunk:
      return TakeChunk(frame);
    case FrameType::kStreamInfo:
      return TakeInfo(frame);
    case FrameType::kPing:
      return TakePing(frame);
    default:
      return PassOver(frame);
  }
}

absl::Status FollowerSession::TakeWelcome(const Frame& frame) {
  v1::Welcome welcome;
  if (!ParseMessage(frame, &welcome)) return absl::DataLossError("the collector's Welcome is none");
  // It has nothing to be held against what the collector holds.
  if (absl::Status status = CheckWelcome(welcome, std::nullopt); !status.ok()) return status;
  frames_.set_max_bytes(kMaxFrameBytes);
  welcomed_ = true;
  events_.welcomed();
  return absl::OkStatus();
}

absl::Status FollowerSession::TakeChunk(const Frame& frame) {
  const auto header = timeline::DecodeChunkHeader(frame.payload);
  if (!header.ok()) return absl::DataLossError(header.status().message());
  const auto info = streams_.find(std::string(header->stream_id.begin(), header->stream_id.end()));
  if (info == streams_.end()) return absl::DataLossError("a chunk of a stream that was not told");
  info->second.used = ++frames_taken_;
  return events_.chunk(info->second.info, frame.payload);
}

absl::Status FollowerSession::TakeInfo(const Frame& frame) {
  v1::StreamInfo info;
  if (!ParseMessage(frame, &info)) return absl::DataLossError("the collector's StreamInfo is none");
  if (info.stream_id().size() != timeline::StreamId().size() ||
      info.agent_id().size() > kMaxNameBytes || info.host_name().size() > kMaxNameBytes) {
    return absl::DataLossError("a StreamInfo whose names are too long, or without a stream id");
  }
  if (streams_.size() >= kMostStreams && !streams_.contains(info.stream_id())) {
    streams_.erase(std::ranges::min_element(streams_, {},
                                            [](const auto& stream) { return stream.second.used; }));
  }
  streams_[info.stream_id()] = {.info = info, .used = ++frames_taken_};
  return absl::OkStatus();
}

absl::Status FollowerSession::TakePing(const Frame& frame) {
  v1::Ping ping;
  if (!ParseMessage(frame, &ping)) return absl::DataLossError("the collector's Ping is none");
  if (!ping.is_answer()) asked_ = ping.nonce();
  return absl::OkStatus();
}

absl::Status FollowerSession::TakeError(const Frame& frame) {
  v1::Error error;
  if (!ParseMessage(frame, &error)) return absl::DataLossError("the collector's Error is none");
  const std::string words = absl::StrCat("the collector says: ", WordsOf(error));
  return NeedsPeople(error.code()) ? absl::PermissionDeniedError(words)
                                   : absl::UnavailableError(words);
}

// One answer for all that asked in one go: whoever asks a thousand times fills no memory.
void FollowerSession::AnswerPing() {
  v1::Ping answer;
  answer.set_nonce(*std::exchange(asked_, std::nullopt));
  answer.set_is_answer(true);
  *answer.mutable_clock() = clock_;
  AppendFrame(FrameType::kPing, answer, output_);
}

absl::Status FollowerSession::Tick(const v1::ClockSnapshot& clock, int64_t now_ns) {
  if (!ended_.ok()) return ended_;
  clock_ = clock;
  const bool is_silent =
      welcomed_ ? now_ns - heard_ns_ >= kGiveUpAfter_ns : now_ns - begun_ns_ >= kWelcomeDeadline_ns;
  if (is_silent) ended_ = absl::DeadlineExceededError("no answer");
  return ended_;
}

}  // namespace vcpulse::stream

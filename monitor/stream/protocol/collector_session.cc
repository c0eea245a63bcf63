#include "monitor/stream/protocol/collector_session.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "monitor/core/check.h"
#include "monitor/stream/protocol/hello.h"
#include "monitor/stream/protocol/refusal.h"
#include "monitor/timeline/chunk_decoder.h"

namespace vcpulse::stream {
namespace {

constexpr int64_t kMillisecond_ns = 1'000'000;
// A frame that has begun is given so long before its rate counts.
constexpr int64_t kRateCountsAfter_ns = 5 * kNsPerSecond;

std::string Seconds(int64_t duration_ns) { return absl::StrCat(duration_ns / kNsPerSecond, " s"); }

absl::Status NotHere(const Frame& frame, const char* when) {
  return absl::DataLossError(
      absl::StrCat("a frame of type ", frame.type, " came ", when, ", where it may not"));
}

uint32_t ToMilliseconds(int64_t duration_ns) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::clamp<int64_t>(duration_ns / kMillisecond_ns, 0, kMost));
}

absl::StatusOr<timeline::ChunkHeader> DecodeHeader(std::span<const uint8_t> chunk) {
  absl::StatusOr<timeline::ChunkHeader> header = timeline::DecodeChunkHeader(chunk);
  if (header.ok() || absl::IsDataLoss(header.status())) return header;
  if (!absl::IsUnimplemented(header.status())) {
    return absl::DataLossError(header.status().message());
  }
  return absl::UnimplementedError(
      absl::StrCat("the agent is of a later release, update vcpulse on the collector: ",
                   header.status().message()));
}

// Whether the payload of a Chunk frame is one whole chunk of `stream` that can be stored unread:
// header and CRCs are good, it holds records, and neither its stored nor its declared size is
// beyond the caps. Nothing is decompressed. Errors: DataLoss, Unimplemented for a chunk of a later
// release.
absl::StatusOr<timeline::ChunkHeader> CheckChunk(std::span<const uint8_t> chunk,
                                                 const timeline::StreamId& stream) {
  // It has checked the caps too: kMaxPayloadBytes for payload and content.
  absl::StatusOr<timeline::ChunkHeader> header = DecodeHeader(chunk);
  if (!header.ok()) return header;
  if (chunk.size() != size_t{header->header_bytes} + header->payload_bytes) {
    return absl::DataLossError(absl::StrCat("a chunk frame of ", chunk.size(),
                                            " bytes whose chunk has ",
                                            size_t{header->header_bytes} + header->payload_bytes));
  }
  if (header->stream_id != stream) {
    return absl::DataLossError("a chunk of another stream than the Hello named");
  }
  if (header->first_sequence == 0 || header->first_sequence > header->last_sequence ||
      header->last_sequence == std::numeric_limits<uint64_t>::max()) {
    return absl::DataLossError("a chunk without records");
  }
  const auto payload = chunk.subspan(header->header_bytes);
  if (timeline::Crc32c(payload) != header->payload_crc) {
    return absl::DataLossError("a chunk that does not match its checksum");
  }
  if (absl::Status status = timeline::CheckDeclaredSize(*header, payload); !status.ok())
    return status;
  return header;
}

}  // namespace

CollectorSession::CollectorSession(const SessionLimits& limits, Events events, int64_t now_ns)
    : limits_(limits),
      events_(std::move(events)),
      begun_ns_(now_ns),
      heard_ns_(now_ns),
      pinged_ns_(now_ns) {}

absl::Status CollectorSession::Receive(std::span<const uint8_t> bytes, int64_t now_ns) {
  if (refused_ || !ended_.ok()) return ended_;
  frames_.Feed(bytes);
  if (absl::Status status = TakeFrames(now_ns); !status.ok()) return Fail(std::move(status));
  if (refused_) return absl::OkStatus();
  if (!frames_.IsInsideFrame()) {
    frame_begun_ns_.reset();
  } else if (!frame_begun_ns_) {
    frame_begun_ns_ = now_ns;
  }
  if (asked_) AnswerPing();
  if (std::exchange(repeat_ack_, false)) SendAck();
  return absl::OkStatus();
}

absl::Status CollectorSession::TakeFrames(int64_t now_ns) {
  while (!refused_) {
    const absl::StatusOr<std::optional<Frame>> frame = frames_.Next();
    if (!frame.ok()) return frame.status();
    if (!frame->has_value()) return absl::OkStatus();
    heard_ns_ = now_ns;
    frame_begun_ns_.reset();
    if (absl::Status status = Take(**frame); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CollectorSession::Take(const Frame& frame) {
  const auto type = static_cast<FrameType>(frame.type);
  if (type == FrameType::kError) return TakeError(frame);
  if (!hello_) {
    return type == FrameType::kHello ? TakeHello(frame) : NotHere(frame, "before the Hello");
  }
  switch (type) {
    case FrameType::kPing:
      return TakePing(frame);
    case FrameType::kChunk:
      return MayReceiveChunks() ? TakeChunk(frame)
                                : NotHere(frame, "before the Welcome or from a follower");
    case FrameType::kGap:
      return MayReceiveChunks() ? TakeGap(frame)
                                : NotHere(frame, "before the Welcome or from a follower");
    case FrameType::kHello:
    case FrameType::kWelcome:
    case FrameType::kAck:
    case FrameType::kStreamInfo:
      return NotHere(frame, "behind the Hello");
    case FrameType::kError:
      break;
  }
  if ((frame.flags & kFlagCritical) == 0) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("a frame of type ", frame.type,
                   " came that this collector does not know and may not pass over: update vcpulse "
                   "on the collector"));
}

bool CollectorSession::MayReceiveChunks() const {
  return welcomed_ && hello_->role() == v1::Hello::ROLE_AGENT;
}

absl::Status CollectorSession::TakeHello(const Frame& frame) {
  v1::Hello hello;
  if (!ParseMessage(frame, &hello)) return absl::DataLossError("the Hello is none");
  if (absl::Status status = CheckHello(hello); !status.ok()) return status;
  if (hello.role() == v1::Hello::ROLE_AGENT) {
    std::ranges::copy(hello.stream_id(), stream_id_.begin());
  }
  // A copy, without the memory that longer or unknown fields have taken.
  hello_ = hello;
  if (events_.hello) {
    if (absl::Status status = events_.hello(*hello_); !status.ok()) return status;
  }
  if (hello_->has_clock() && events_.clock && !refused_) events_.clock(hello_->clock());
  return absl::OkStatus();
}

absl::StatusOr<bool> CollectorSession::IsNext(uint64_t first, uint64_t last) {
  if (first == next_) return true;
  if (last < next_) {
    ++duplicates_;
    repeat_ack_ = true;
    return false;
  }
  return absl::OutOfRangeError(
      absl::StrCat("records ", first, " to ", last, " came where record ", next_,
                   " is the next: ", first < next_ ? "they overlap" : "a hole must be told"));
}

absl::Status CollectorSession::TakeChunk(const Frame& frame) {
  const absl::StatusOr<timeline::ChunkHeader> header = CheckChunk(frame.payload, stream_id_);
  if (!header.ok()) return header.status();
  const absl::StatusOr<bool> is_next = IsNext(header->first_sequence, header->last_sequence);
  if (!is_next.ok()) return is_next.status();
  if (!*is_next) return absl::OkStatus();
  next_ = header->last_sequence + 1;
  return events_.chunk ? events_.chunk(*header, frame.payload) : absl::OkStatus();
}

absl::Status CollectorSession::TakeGap(const Frame& frame) {
  v1::LostRecords lost;
  if (!ParseMessage(frame, &lost)) return absl::DataLossError("the Gap is none");
  if (lost.first_sequence() == 0 || lost.first_sequence() > lost.last_sequence() ||
      lost.last_sequence() == std::numeric_limits<uint64_t>::max()) {
    return absl::DataLossError(
        absl::StrCat("a Gap of records ", lost.first_sequence(), " to ", lost.last_sequence()));
  }
  const absl::StatusOr<bool> is_next = IsNext(lost.first_sequence(), lost.last_sequence());
  if (!is_next.ok()) return is_next.status();
  if (!*is_next) return absl::OkStatus();
  next_ = lost.last_sequence() + 1;
  return events_.gap ? events_.gap(lost) : absl::OkStatus();
}

absl::Status CollectorSession::TakePing(const Frame& frame) {
  v1::Ping ping;
  if (!ParseMessage(frame, &ping)) return absl::DataLossError("the Ping is none");
  if (!ping.is_answer()) asked_ = ping.nonce();
  if (ping.has_clock() && events_.clock) events_.clock(ping.clock());
  return absl::OkStatus();
}

absl::Status CollectorSession::TakeError(const Frame& frame) {
  v1::Error error;
  if (!ParseMessage(frame, &error)) return absl::DataLossError("the Error is none");
  ended_ = absl::UnavailableError(absl::StrCat("the peer says: ", WordsOf(error)));
  return ended_;
}

// One answer for all that asked in one go: whoever asks a thousand times fills no memory.
void CollectorSession::AnswerPing() {
  v1::Ping answer;
  answer.set_nonce(*std::exchange(asked_, std::nullopt));
  answer.set_is_answer(true);
  AppendFrame(FrameType::kPing, answer, output_);
}

absl::Status CollectorSession::Tick(const v1::ClockSnapshot& clock, int64_t now_ns) {
  if (refused_ || !ended_.ok()) return ended_;
  if (!hello_ && now_ns - begun_ns_ >= limits_.handshake_ns) {
    return Fail(absl::DeadlineExceededError(
        absl::StrCat("no Hello came within ", Seconds(limits_.handshake_ns))));
  }
  if (absl::Status status = CheckFrameRate(now_ns); !status.ok()) return Fail(std::move(status));
  if (now_ns - heard_ns_ >= limits_.idle_ns) {
    return Fail(
        absl::DeadlineExceededError(absl::StrCat("nothing came for ", Seconds(limits_.idle_ns))));
  }
  if (welcomed_ && now_ns - std::max(heard_ns_, pinged_ns_) >= limits_.ping_after_ns) {
    v1::Ping ping;
    ping.set_nonce(++nonce_);
    *ping.mutable_clock() = clock;
    AppendFrame(FrameType::kPing, ping, output_);
    pinged_ns_ = now_ns;
  }
  return absl::OkStatus();
}

absl::Status CollectorSession::CheckFrameRate(int64_t now_ns) const {
  if (!frame_begun_ns_) return absl::OkStatus();
  const int64_t taken_ns = now_ns - *frame_begun_ns_;
  if (taken_ns >= limits_.frame_ns) {
    return absl::DeadlineExceededError(
        absl::StrCat("a frame has not ended within ", Seconds(limits_.frame_ns)));
  }
  const double seconds = static_cast<double>(taken_ns) / static_cast<double>(kNsPerSecond);
  const auto bytes = static_cast<double>(frames_.buffered());
  if (taken_ns >= kRateCountsAfter_ns &&
      bytes < seconds * static_cast<double>(limits_.min_bytes_per_second)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "a frame comes at less than ", limits_.min_bytes_per_second, " bytes per second"));
  }
  return absl::OkStatus();
}

void CollectorSession::Excuse(int64_t duration_ns) {
  begun_ns_ += duration_ns;
  heard_ns_ += duration_ns;
  if (frame_begun_ns_) *frame_begun_ns_ += duration_ns;
}

void CollectorSession::Welcome(uint64_t durable, const std::string& tool_version,
                               const std::string& host_name) {
  VCPULSE_CHECK(hello_ && !welcomed_, "Welcome answers a Hello, once");
  VCPULSE_CHECK(durable < std::numeric_limits<uint64_t>::max(), "no record has this number");
  if (refused_ || !ended_.ok()) return;
  welcomed_ = true;
  next_ = durable + 1;
  acknowledged_ = durable;
  const bool same_major = hello_->major() <= kMajor;
  v1::Welcome welcome;
  welcome.set_major(std::min(hello_->major(), kMajor));
  welcome.set_minor(same_major ? std::min(hello_->minor(), kMinor) : kMinor);
  welcome.set_durable_sequence(durable);
  welcome.set_credit_bytes(limits_.credit_bytes);
  welcome.set_max_frame_bytes(kMaxFrameBytes);
  welcome.set_max_bytes_per_second(limits_.max_bytes_per_second);
  welcome.set_idle_ms(ToMilliseconds(limits_.idle_ns));
  welcome.set_tool_version(OneLine(tool_version, kMaxNameBytes));
  welcome.set_host_name(OneLine(host_name, kMaxNameBytes));
  AppendFrame(FrameType::kWelcome, welcome, output_);
  // A follower has nothing long to say.
  if (hello_->role() == v1::Hello::ROLE_AGENT) frames_.set_max_bytes(kMaxFrameBytes);
}

void CollectorSession::Ack(uint64_t durable) {
  if (!welcomed_ || refused_ || !ended_.ok() || durable <= acknowledged_) return;
  VCPULSE_CHECK(durable < next_,
                absl::StrCat("an Ack of record ", durable, ", received up to ", next_ - 1));
  acknowledged_ = durable;
  SendAck();
}

void CollectorSession::SendAck() {
  v1::Ack ack;
  ack.set_durable_sequence(acknowledged_);
  AppendFrame(FrameType::kAck, ack, output_);
}

void CollectorSession::Refuse(v1::Error::Code code, const std::string& reason) {
  if (refused_ || !ended_.ok()) return;
  refused_ = true;
  AppendError(code, reason, output_);
}

void CollectorSession::SendStreamInfo(const v1::StreamInfo& info) {
  if (!refused_ && ended_.ok()) AppendFrame(FrameType::kStreamInfo, info, output_);
}

absl::Status CollectorSession::Fail(absl::Status status) {
  // Silent where the peer has said why it goes, or the owner why it refuses.
  if (ended_.ok()) {
    Refuse(CodeFor(status), std::string(status.message()));
    ended_ = std::move(status);
  }
  return ended_;
}

}  // namespace vcpulse::stream

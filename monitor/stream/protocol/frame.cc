#include "monitor/stream/protocol/frame.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "monitor/core/check.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::stream {
namespace {

constexpr size_t kTypeAt = 4;
constexpr size_t kFlagsAt = 5;
constexpr size_t kLengthAt = 8;
constexpr size_t kPayloadCrcAt = 12;
constexpr size_t kHeadCrcAt = 16;

// Memory that a reader keeps while no frame is under way.
constexpr size_t kKeptBytes = 4u << 10;

void Put32(uint32_t value, uint8_t* at) {
  for (size_t i = 0; i < sizeof(value); ++i) at[i] = static_cast<uint8_t>(value >> (8 * i));
}

uint32_t Get32(const uint8_t* at) {
  uint32_t value = 0;
  for (size_t i = 0; i < sizeof(value); ++i) value |= uint32_t{at[i]} << (8 * i);
  return value;
}

// Fills the head at `at` for the payload behind it.
void FillHead(FrameType type, size_t at, std::vector<uint8_t>& out) {
  const std::span<const uint8_t> payload = std::span(out).subspan(at + kFrameHeadBytes);
  VCPULSE_CHECK(payload.size() <= kMaxFrameBytes,
                absl::StrCat("a frame of ", payload.size(), " bytes"));
  uint8_t* head = out.data() + at;
  std::ranges::copy(kFrameMagic, head);
  head[kTypeAt] = static_cast<uint8_t>(type);
  Put32(static_cast<uint32_t>(payload.size()), head + kLengthAt);
  Put32(timeline::Crc32c(payload), head + kPayloadCrcAt);
  Put32(timeline::Crc32c({head, kHeadCrcAt}), head + kHeadCrcAt);
}

// What a person should know about bytes that are no frame.
std::string Guess(std::span<const uint8_t> bytes) {
  constexpr uint8_t kTlsHandshake = 0x16;
  constexpr uint8_t kTlsAlert = 0x15;
  const auto begins = [&](const std::string& text) {
    return bytes.size() >= text.size() && std::equal(text.begin(), text.end(), bytes.begin());
  };
  if (bytes[0] == kTlsHandshake || bytes[0] == kTlsAlert) {
    return " (it looks like TLS: use tls: at both ends or at neither)";
  }
  if (begins("GET ") || begins("POST") || begins("HEAD") || begins("HTTP")) {
    return " (it looks like HTTP)";
  }
  return "";
}

}  // namespace

void AppendFrame(FrameType type, std::span<const uint8_t> payload, std::vector<uint8_t>& out) {
  const size_t at = out.size();
  out.resize(at + kFrameHeadBytes + payload.size());
  std::ranges::copy(payload, out.begin() + static_cast<ptrdiff_t>(at + kFrameHeadBytes));
  FillHead(type, at, out);
}

void AppendFrame(FrameType type, const google::protobuf::MessageLite& message,
                 std::vector<uint8_t>& out) {
  const size_t at = out.size();
  out.resize(at + kFrameHeadBytes + message.ByteSizeLong());
  message.SerializeWithCachedSizesToArray(out.data() + at + kFrameHeadBytes);
  FillHead(type, at, out);
}

bool ParseMessage(const Frame& frame, google::protobuf::Message* message) {
  if (frame.payload.size() > kMaxHandshakeFrameBytes) return false;
  if (!message->ParseFromArray(frame.payload.data(), static_cast<int>(frame.payload.size()))) {
    return false;
  }
  message->DiscardUnknownFields();  // they may be a frame long
  return true;
}

absl::Status PassOver(const Frame& frame) {
  switch (static_cast<FrameType>(frame.type)) {
    case FrameType::kHello:
    case FrameType::kWelcome:
    case FrameType::kChunk:
    case FrameType::kAck:
    case FrameType::kGap:
    case FrameType::kPing:
    case FrameType::kError:
    case FrameType::kStreamInfo:
      return absl::DataLossError(absl::StrCat("the collector sent a frame of type ", frame.type,
                                              " that may not come here"));
  }
  if ((frame.flags & kFlagCritical) == 0) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("the collector sent a frame of type ", frame.type,
                   " that this vcpulse does not know and may not pass over: update this one"));
}

void FrameReader::Feed(std::span<const uint8_t> bytes) {
  if (!failed_.ok()) return;
  DropTaken();
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

// Frees what was taken, moving no byte more than once on average.
void FrameReader::DropTaken() {
  if (taken_ < buffered()) return;
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(taken_));
  taken_ = 0;
  if (buffer_.empty() && buffer_.capacity() > kKeptBytes) std::vector<uint8_t>().swap(buffer_);
}

absl::StatusOr<std::optional<Frame>> FrameReader::Next() {
  if (!failed_.ok()) return failed_;
  DropTaken();
  const auto rest = std::span<const uint8_t>(buffer_).subspan(taken_);
  failed_ = CheckHead(rest);
  if (!failed_.ok()) return failed_;
  if (rest.size() < kFrameHeadBytes) return std::nullopt;
  const size_t length = Get32(rest.data() + kLengthAt);
  if (rest.size() - kFrameHeadBytes < length) return std::nullopt;
  const auto payload = rest.subspan(kFrameHeadBytes, length);
  if (timeline::Crc32c(payload) != Get32(rest.data() + kPayloadCrcAt)) {
    failed_ = absl::DataLossError("a frame does not match its checksum");
    return failed_;
  }
  taken_ += kFrameHeadBytes + length;
  return Frame{.type = rest[kTypeAt], .flags = rest[kFlagsAt], .payload = payload};
}

// As soon as its bytes are there: a peer of another protocol is told so with its first ones.
absl::Status FrameReader::CheckHead(std::span<const uint8_t> bytes) const {
  const size_t magic_bytes = std::min(bytes.size(), kFrameMagic.size());
  if (!std::equal(kFrameMagic.begin(), kFrameMagic.begin() + magic_bytes, bytes.begin())) {
    return absl::DataLossError(absl::StrCat("received data is not vcpulse protocol", Guess(bytes)));
  }
  if (bytes.size() < kFrameHeadBytes) return absl::OkStatus();
  if (timeline::Crc32c(bytes.first(kHeadCrcAt)) != Get32(bytes.data() + kHeadCrcAt)) {
    return absl::DataLossError("the head of a frame does not match its checksum");
  }
  const uint32_t length = Get32(bytes.data() + kLengthAt);
  if (length > max_bytes_) {
    return absl::DataLossError(absl::StrCat(
        "a frame of ", length, " bytes is longer than may come here (", max_bytes_, ")"));
  }
  return absl::OkStatus();
}

bool FrameReader::IsInsideFrame() const { return buffered() > 0; }

}  // namespace vcpulse::stream

#pragma once

// Both ends of a connection in memory: an agent and a collector that notes what it is handed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "monitor/stream/protocol/agent_session.h"
#include "monitor/stream/protocol/collector_session.h"
#include "monitor/stream/protocol/hello.h"
#include "monitor/timeline/writer.h"

namespace vcpulse::stream {

using Bytes = std::vector<uint8_t>;

// That `statement` fails a CHECK whose message has `words`.
#define EXPECT_BUG(statement, words) \
  EXPECT_THAT([&] { statement; },    \
              testing::ThrowsMessage<std::logic_error>(testing::HasSubstr(words)))

inline constexpr int64_t kSecond = 1'000'000'000;
inline constexpr timeline::StreamId kSomeStream = {1, 2, 3};

inline AgentIdentity SomeAgent() {
  return {.agent_id = "host-a.example",
          .host_name = "host-a",
          .boot_id = "b00t",
          .tool_version = "1.2.3"};
}

inline v1::ClockSnapshot SomeClock(int64_t mono_ns = 5) {
  v1::ClockSnapshot clock;
  clock.set_mono_ns(mono_ns);
  clock.set_realtime_ns(mono_ns + 1000);
  return clock;
}

inline v1::Hello SomeHello() {
  v1::Hello hello;
  hello.set_major(kMajor);
  hello.set_min_major(kMinMajor);
  hello.set_agent_id("host-a.example");
  hello.set_host_name("host-a");
  hello.set_stream_id(kSomeStream.data(), kSomeStream.size());
  hello.set_first_sequence(1);
  hello.set_next_sequence(1);
  return hello;
}

inline v1::Hello FollowerHello() {
  v1::Hello hello;
  hello.set_major(kMajor);
  hello.set_min_major(kMinMajor);
  hello.set_role(v1::Hello::ROLE_FOLLOWER);
  return hello;
}

inline v1::Welcome SomeWelcome(uint64_t durable = 0) {
  v1::Welcome welcome;
  welcome.set_major(kMajor);
  welcome.set_durable_sequence(durable);
  welcome.set_credit_bytes(1000);
  welcome.set_max_frame_bytes(kMaxFrameBytes);
  return welcome;
}

inline v1::LostRecords Lost(uint64_t first, uint64_t last) {
  v1::LostRecords lost;
  lost.set_first_sequence(first);
  lost.set_last_sequence(last);
  lost.set_reason(v1::LostRecords::REASON_SPOOL_FULL);
  return lost;
}

inline Bytes FrameOf(FrameType type, const google::protobuf::MessageLite& message) {
  Bytes out;
  AppendFrame(type, message, out);
  return out;
}

inline Bytes FrameOf(FrameType type, std::span<const uint8_t> payload) {
  Bytes out;
  AppendFrame(type, payload, out);
  return out;
}

// A frame whose type and flags no release of ours sends.
inline Bytes FrameOf(uint8_t type, uint8_t flags, std::span<const uint8_t> payload = {}) {
  Bytes out;
  AppendFrame(static_cast<FrameType>(type), payload, out);
  out[5] = flags;
  const uint32_t crc = timeline::Crc32c(std::span(out).first(16));
  for (size_t i = 0; i < 4; ++i) out[16 + i] = static_cast<uint8_t>(crc >> (8 * i));
  return out;
}

// A chunk of markers, first to last.
inline Bytes ChunkOf(uint64_t first, uint64_t last, timeline::StreamId stream = kSomeStream) {
  Bytes chunk;
  const auto writer = timeline::NewChunkWriter(stream,
                                               [&](std::span<const uint8_t> bytes) {
                                                 chunk.assign(bytes.begin(), bytes.end());
                                                 return absl::OkStatus();
                                               },
                                               {.first_sequence = first});
  for (uint64_t s = first; s <= last; ++s) {
    v1::TimelineRecord record;
    record.mutable_marker()->set_name("marker");
    writer->Add(record, static_cast<int64_t>(s));
  }
  EXPECT_TRUE(writer->Flush(SomeClock()).ok());
  return chunk;
}

inline timeline::ChunkHeader HeaderOf(std::span<const uint8_t> chunk) {
  const auto header = timeline::DecodeChunkHeader(chunk);
  EXPECT_TRUE(header.ok()) << header.status();
  return header.value_or(timeline::ChunkHeader());
}

// A frame by value.
struct SeenFrame {
  uint8_t type = 0;
  Bytes payload;

  bool Is(FrameType wanted) const { return type == static_cast<uint8_t>(wanted); }
  template <typename Message>
  Message As() const {
    Message message;
    EXPECT_TRUE(message.ParseFromArray(payload.data(), static_cast<int>(payload.size())));
    return message;
  }
};

// Takes all frames out of `output`.
inline std::vector<SeenFrame> TakeFrames(Bytes& output) {
  std::vector<SeenFrame> seen;
  FrameReader reader(kMaxFrameBytes);
  reader.Feed(std::exchange(output, {}));
  while (true) {
    const auto frame = reader.Next();
    EXPECT_TRUE(frame.ok()) << frame.status();
    if (!frame.ok() || !frame->has_value()) break;
    seen.push_back({(*frame)->type, Bytes((*frame)->payload.begin(), (*frame)->payload.end())});
  }
  EXPECT_FALSE(reader.IsInsideFrame());
  return seen;
}

// The only frame in `output`.
inline SeenFrame TakeFrame(Bytes& output, FrameType type) {
  const std::vector<SeenFrame> frames = TakeFrames(output);
  EXPECT_EQ(frames.size(), 1u);
  if (frames.empty()) return {};
  EXPECT_TRUE(frames.back().Is(type)) << "type " << static_cast<int>(frames.back().type);
  return frames.back();
}

// A collector that notes all events as text and welcomes at once (unless told not to).
struct NotingCollector {
  explicit NotingCollector(const SessionLimits& limits = {}, int64_t now_ns = 0)
      : session(limits,
                {.hello =
                     [this](const v1::Hello& hello) {
                       events.push_back(absl::StrCat("hello ", hello.agent_id()));
                       last_hello = hello;
                       if (welcomes) session.Welcome(durable, "9.9", "collector");
                       return hello_answer;
                     },
                 .chunk =
                     [this](const timeline::ChunkHeader& header, std::span<const uint8_t> bytes) {
                       events.push_back(absl::StrCat("chunk ", header.first_sequence, "-",
                                                     header.last_sequence, " ", bytes.size()));
                       stored.insert(stored.end(), bytes.begin(), bytes.end());
                       return chunk_answer;
                     },
                 .gap =
                     [this](const v1::LostRecords& lost) {
                       events.push_back(absl::StrCat("gap ", lost.first_sequence(), "-",
                                                     lost.last_sequence(), " ", lost.reason()));
                       return gap_answer;
                     },
                 .clock =
                     [this](const v1::ClockSnapshot& clock) {
                       events.push_back(absl::StrCat("clock ", clock.mono_ns()));
                     }},
                now_ns) {}

  NotingCollector(const NotingCollector&) = delete;
  NotingCollector& operator=(const NotingCollector&) = delete;

  absl::Status Receive(std::span<const uint8_t> bytes, int64_t now_ns = 0) {
    return session.Receive(bytes, now_ns);
  }
  // Hello is taken and answered, and the answer forgotten.
  void BeWelcomed(const v1::Hello& hello = SomeHello()) {
    ASSERT_TRUE(Receive(FrameOf(FrameType::kHello, hello)).ok());
    ASSERT_TRUE(session.welcomed());
    session.output().clear();
    events.clear();
  }

  bool welcomes = true;
  uint64_t durable = 0;
  absl::Status hello_answer;
  absl::Status chunk_answer;
  absl::Status gap_answer;
  std::vector<std::string> events;
  v1::Hello last_hello;
  Bytes stored;
  CollectorSession session;
};

}  // namespace vcpulse::stream

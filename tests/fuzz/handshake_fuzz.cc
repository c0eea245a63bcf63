// Both ends of a connection, from arbitrary bytes and times. The input is a list of steps: the
// first byte of each says which end and what: raw bytes, a frame with good checksums around the
// bytes, time, or something that the owner does. What must hold whatever comes is checked on the
// way.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "monitor/stream/protocol/agent_session.h"
#include "monitor/stream/protocol/collector_session.h"
#include "monitor/stream/protocol/follower_session.h"
#include "tests/fuzz/stream_bytes.h"

namespace vcpulse::stream {
namespace {

constexpr timeline::StreamId kStream = {1, 2, 3};

void Require(bool holds) {
  if (!holds) std::abort();
}

// That what was put out is frames, each of which a peer may be sent.
void RequireFrames(std::vector<uint8_t>& output) {
  FrameReader reader(kMaxFrameBytes);
  reader.Feed(output);
  while (true) {
    const auto frame = reader.Next();
    Require(frame.ok());
    if (!frame->has_value()) break;
  }
  Require(!reader.IsInsideFrame());
  output.clear();
}

class CollectorEnd {
 public:
  explicit CollectorEnd(bool welcomes)
      : welcomes_(welcomes),
        session_({},
                 {.hello = [this](const v1::Hello& hello) { return TakeHello(hello); },
                  .chunk =
                      [this](const timeline::ChunkHeader& header, std::span<const uint8_t>) {
                        return Follow(header.first_sequence, header.last_sequence);
                      },
                  .gap =
                      [this](const v1::LostRecords& lost) {
                        return Follow(lost.first_sequence(), lost.last_sequence());
                      },
                  .clock = [](const v1::ClockSnapshot&) {}},
                 0) {}

  CollectorEnd(const CollectorEnd&) = delete;
  CollectorEnd& operator=(const CollectorEnd&) = delete;

  void Receive(std::span<const uint8_t> bytes, int64_t now_ns) {
    const bool was_ended = ended_;
    const size_t events = events_;
    ended_ = !session_.Receive(bytes, now_ns).ok();
    Require(!was_ended || (ended_ && events_ == events && session_.output().empty()));
    RequireFrames(session_.output());
  }
  void Tick(int64_t now_ns) {
    ended_ = !session_.Tick({}, now_ns).ok();
    RequireFrames(session_.output());
  }
  void Act(uint64_t number) {
    switch (number % 4) {
      case 0:
        if (greeted_ && !session_.welcomed()) Welcome(number / 4 % 100);
        break;
      case 1:
        if (session_.received() >= number / 4) session_.Ack(number / 4);
        break;
      case 2:
        session_.Refuse(v1::Error::CODE_SHUTDOWN, std::string(number / 4 % 700, '\xff'));
        break;
      default:
        session_.Excuse(static_cast<int64_t>(number / 4 % 1'000'000'000'000));
    }
    RequireFrames(session_.output());
  }

 private:
  absl::Status TakeHello(const v1::Hello& hello) {
    Require(!greeted_);
    greeted_ = true;
    Require(hello.role() == v1::Hello::ROLE_FOLLOWER || hello.stream_id().size() == 16);
    if (welcomes_) Welcome(hello.first_sequence() % 5);
    return absl::OkStatus();
  }
  void Welcome(uint64_t durable) {
    session_.Welcome(durable, "1", "h");
    if (session_.welcomed()) last_ = durable;
  }
  // Each record once, in order, no hole.
  absl::Status Follow(uint64_t first, uint64_t last) {
    Require(session_.welcomed() && first == last_ + 1 && last >= first &&
            last < std::numeric_limits<uint64_t>::max());
    last_ = last;
    Require(session_.received() == last);
    ++events_;
    return absl::OkStatus();
  }

  const bool welcomes_;
  bool greeted_ = false;
  bool ended_ = false;
  uint64_t last_ = 0;
  size_t events_ = 0;
  CollectorSession session_;
};

class AgentEnd {
 public:
  explicit AgentEnd(std::optional<uint64_t> last_sent)
      : session_({.agent_id = "a"},
                 {.stream_id = kStream,
                  .first_sequence = 3,
                  .next_sequence = 1000,
                  .last_sent = last_sent},
                 {}, 0) {}

  void Receive(std::span<const uint8_t> bytes, int64_t now_ns) {
    const uint64_t before = session_.durable();
    ended_ = !session_.Receive(bytes, now_ns).ok();
    Require(session_.durable() >= before);
    Require(!session_.welcomed() || session_.durable() < session_.next_to_send());
    RequireFrames(session_.output());
  }
  void Tick(int64_t now_ns) {
    ended_ = !session_.Tick({}, now_ns).ok();
    RequireFrames(session_.output());
  }
  void Act(uint64_t number, int64_t now_ns) {
    if (!session_.welcomed() || ended_) return;
    const uint64_t first = session_.next_to_send();
    if (first > std::numeric_limits<uint64_t>::max() - 10) return;
    const uint64_t last = first + number / 2 % 4;
    if (number % 2 == 0) {
      v1::LostRecords lost;
      lost.set_first_sequence(first);
      lost.set_last_sequence(last);
      session_.SendGap(lost, now_ns);
    } else if (const std::vector<uint8_t> chunk(number / 8 % 4096);
               session_.MaySend(chunk.size())) {
      session_.SendChunk({.first_sequence = first, .last_sequence = last}, chunk, now_ns);
    }
    Require(session_.next_to_send() == last + 1 || session_.next_to_send() == first);
    RequireFrames(session_.output());
  }

 private:
  bool ended_ = false;
  AgentSession session_;
};

// Is given what the agent is given.
class FollowerEnd {
 public:
  FollowerEnd() = default;
  FollowerEnd(const FollowerEnd&) = delete;
  FollowerEnd& operator=(const FollowerEnd&) = delete;

  void Receive(std::span<const uint8_t> bytes, int64_t now_ns) {
    const bool was_ended = ended_;
    const size_t events = events_;
    ended_ = !session_.Receive(bytes, now_ns).ok();
    Require(!was_ended || (ended_ && events_ == events && session_.output().empty()));
    RequireFrames(session_.output());
  }
  void Tick(int64_t now_ns) {
    ended_ = !session_.Tick({}, now_ns).ok();
    RequireFrames(session_.output());
  }

 private:
  bool ended_ = false;
  size_t events_ = 0;
  FollowerSession session_{
      {.agent_id = "f"},
      "",
      {.welcomed = [this] { Require(events_++ == 0); },
       .chunk =
           [this](const v1::StreamInfo& info, std::span<const uint8_t> chunk) {
             Require(events_++ > 0 && !chunk.empty() && info.stream_id().size() == 16);
             return absl::OkStatus();
           }},
      {},
      0};
};

void Play(Input input) {
  const uint8_t mode = input.Byte();
  CollectorEnd collector((mode & 1) != 0);
  AgentEnd agent((mode & 2) != 0 ? std::nullopt : std::optional<uint64_t>(999));
  FollowerEnd follower;
  int64_t now_ns = 0;
  while (!input.empty()) {
    const uint8_t step = input.Byte();
    const bool to_collector = (step & 1) != 0;
    std::vector<uint8_t> bytes;
    switch (step >> 1 & 3) {
      case 0: {
        const auto raw = input.Take(input.Byte());
        bytes.assign(raw.begin(), raw.end());
        break;
      }
      case 1: {
        const auto type = static_cast<FrameType>(input.Byte());
        AppendFrame(type, input.Take(input.Length()), bytes);
        break;
      }
      case 2: {
        now_ns += static_cast<int64_t>(input.Number() % 100'000'000'000);
        to_collector ? collector.Tick(now_ns) : agent.Tick(now_ns);
        if (!to_collector) follower.Tick(now_ns);
        continue;
      }
      default: {
        const uint64_t number = input.Number();
        to_collector ? collector.Act(number) : agent.Act(number, now_ns);
        continue;
      }
    }
    to_collector ? collector.Receive(bytes, now_ns) : agent.Receive(bytes, now_ns);
    if (!to_collector) follower.Receive(bytes, now_ns);
  }
}

}  // namespace
}  // namespace vcpulse::stream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vcpulse::stream::Play(vcpulse::stream::Input({data, size}));
  return 0;
}

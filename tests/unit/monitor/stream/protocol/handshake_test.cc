#include "tests/unit/monitor/stream/protocol/fixture.h"

namespace vcpulse::stream {
namespace {

using testing::ElementsAre;

// From Hello to Ack, both ends of ours.
TEST(StreamHandshake, ChunksAndGapsArriveAndAreAcknowledged) {
  AgentSession agent(SomeAgent(),
                     {.stream_id = kSomeStream, .first_sequence = 3, .next_sequence = 9},
                     SomeClock(), 0);
  NotingCollector collector;
  collector.durable = 4;
  EXPECT_FALSE(agent.MaySend(1));
  ASSERT_TRUE(collector.Receive(std::exchange(agent.output(), {})).ok());
  ASSERT_TRUE(agent.Receive(std::exchange(collector.session.output(), {}), 0).ok());
  ASSERT_TRUE(agent.welcomed());
  EXPECT_EQ(agent.welcome().host_name(), "collector");
  EXPECT_EQ(agent.durable(), 4u);
  EXPECT_EQ(agent.next_to_send(), 5u);

  agent.SendGap(Lost(5, 6), 0);
  const Bytes chunk = ChunkOf(7, 8);
  ASSERT_TRUE(agent.MaySend(chunk.size()));
  agent.SendChunk(HeaderOf(chunk), chunk, 0);
  EXPECT_EQ(agent.next_to_send(), 9u);
  ASSERT_TRUE(collector.Receive(std::exchange(agent.output(), {})).ok());
  EXPECT_THAT(collector.events, ElementsAre("hello host-a.example", "clock 5", "gap 5-6 1",
                                            absl::StrCat("chunk 7-8 ", chunk.size())));
  EXPECT_EQ(collector.stored, chunk);
  EXPECT_EQ(collector.session.received(), 8u);

  collector.session.Ack(8);
  ASSERT_TRUE(agent.Receive(collector.session.output(), 0).ok());
  EXPECT_EQ(agent.durable(), 8u);
}

// What an agent says: Hello, then after the Welcome two chunks, a gap and a ping. `behind_hello` is
// the rest, which may only be sent once welcomed.
struct Conversation {
  Bytes hello = FrameOf(FrameType::kHello, SomeHello());
  Bytes behind_hello;
  std::vector<std::string> events;

  Conversation() {
    AppendFrame(FrameType::kChunk, ChunkOf(1, 2), behind_hello);
    AppendFrame(FrameType::kGap, Lost(3, 4), behind_hello);
    AppendFrame(FrameType::kChunk, ChunkOf(5, 9), behind_hello);
    v1::Ping ping;
    *ping.mutable_clock() = SomeClock();
    AppendFrame(FrameType::kPing, ping, behind_hello);
    events = Play(all(), {all().size()});
    EXPECT_EQ(events.size(), 5u);
  }

  Bytes all() const {
    Bytes bytes = hello;
    bytes.insert(bytes.end(), behind_hello.begin(), behind_hello.end());
    return bytes;
  }

  // The events of a collector that is given `bytes` cut at `ends`.
  static std::vector<std::string> Play(const Bytes& bytes, const std::vector<size_t>& ends) {
    NotingCollector collector;
    size_t at = 0;
    for (const size_t end : ends) {
      EXPECT_TRUE(collector.Receive(std::span(bytes).subspan(at, end - at)).ok());
      at = end;
    }
    return collector.events;
  }
};

TEST(StreamHandshake, EverySplitGivesTheSameEvents) {
  const Conversation conversation;
  const Bytes all = conversation.all();
  for (size_t first = 0; first <= all.size(); ++first) {
    ASSERT_EQ(Conversation::Play(all, {first, all.size()}), conversation.events) << first;
  }
  std::vector<size_t> ends(all.size());
  for (size_t i = 0; i < ends.size(); ++i) ends[i] = i + 1;
  EXPECT_EQ(Conversation::Play(all, ends), conversation.events);
  // Any three pieces, by a fixed rule.
  for (size_t i = 0; i < 2000; ++i) {
    const size_t a = i * 7919 % all.size();
    const size_t b = a + i * 104729 % (all.size() - a);
    ASSERT_EQ(Conversation::Play(all, {a, b, all.size()}), conversation.events) << a << " " << b;
  }
}

// The agent's side likewise.
TEST(StreamHandshake, EverySplitGivesTheAgentTheSame) {
  NotingCollector collector;
  ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kHello, SomeHello())).ok());
  Bytes answer = std::exchange(collector.session.output(), {});
  AppendFrame(FrameType::kPing, v1::Ping(), answer);
  AppendFrame(static_cast<FrameType>(99), Bytes(10), answer);
  for (size_t first = 0; first <= answer.size(); ++first) {
    AgentSession agent(SomeAgent(), {.stream_id = kSomeStream}, SomeClock(), 0);
    agent.output().clear();
    ASSERT_TRUE(agent.Receive(std::span(answer).first(first), 0).ok());
    ASSERT_TRUE(agent.Receive(std::span(answer).subspan(first), 0).ok());
    EXPECT_TRUE(agent.welcomed());
    TakeFrame(agent.output(), FrameType::kPing);
  }
}

// Each byte of both halves of a handshake, each bit: the damaged connection ends (or waits for more
// and ends by its deadline), and another one of the same collector does not notice.
TEST(StreamHandshake, CorruptionCostsThatConnectionOnly) {
  const Bytes hello = FrameOf(FrameType::kHello, SomeHello());
  NotingCollector other;
  other.BeWelcomed();
  for (size_t i = 0; i < hello.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = hello;
      bad[i] = static_cast<uint8_t>(bad[i] ^ 1 << bit);
      NotingCollector collector;
      EXPECT_FALSE(collector.Receive(bad).ok()) << i << " " << bit;
      EXPECT_FALSE(collector.session.welcomed());
      EXPECT_TRUE(collector.events.empty());
      const auto error = TakeFrame(collector.session.output(), FrameType::kError).As<v1::Error>();
      EXPECT_EQ(error.code(), v1::Error::CODE_MALFORMED);
    }
  }
  EXPECT_TRUE(other.Receive(FrameOf(FrameType::kChunk, ChunkOf(1, 2))).ok());

  NotingCollector collector;
  ASSERT_TRUE(collector.Receive(hello).ok());
  const Bytes welcome = collector.session.output();
  for (size_t i = 0; i < welcome.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = welcome;
      bad[i] = static_cast<uint8_t>(bad[i] ^ 1 << bit);
      AgentSession agent(SomeAgent(), {.stream_id = kSomeStream}, SomeClock(), 0);
      EXPECT_TRUE(absl::IsDataLoss(agent.Receive(bad, 0))) << i << " " << bit;
      EXPECT_FALSE(agent.welcomed());
    }
  }
}

// Closed at every byte offset: what was whole counts, no more.
TEST(StreamHandshake, BytesThatNeverComeAreNotMadeUp) {
  const Conversation conversation;
  const Bytes all = conversation.all();
  size_t most = 0;
  for (size_t length = 0; length <= all.size(); ++length) {
    NotingCollector collector;
    ASSERT_TRUE(collector.Receive(std::span(all).first(length)).ok());
    ASSERT_LE(collector.events.size(), conversation.events.size());
    EXPECT_TRUE(
        std::equal(collector.events.begin(), collector.events.end(), conversation.events.begin()));
    EXPECT_GE(collector.events.size(), most);
    most = collector.events.size();
  }
  EXPECT_EQ(most, conversation.events.size());
}

}  // namespace
}  // namespace vcpulse::stream

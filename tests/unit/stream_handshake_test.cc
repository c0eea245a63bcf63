#include "tests/unit/stream_fixture.h"

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

}  // namespace
}  // namespace vcpulse::stream

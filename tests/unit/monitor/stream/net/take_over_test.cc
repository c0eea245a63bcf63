// An agent connects anew before the collector has seen that its old connection is dead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/fakes/chaos_proxy.h"
#include "tests/unit/monitor/stream/net/raw_peer.h"
#include "tests/unit/monitor/stream/net/sockets_fixture.h"

namespace vcpulse::stream {
namespace {

using fakes::Mischief;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kTakeOvers = 60;

// The old connection is a peer made by hand, of which the collector hears nothing more.
class StreamTakeOver : public StreamTest {
 protected:
  static std::vector<uint8_t> FramesOf(std::span<const Chunk> chunks) {
    std::vector<uint8_t> frames;
    for (const Chunk& chunk : chunks) AppendFrame(FrameType::kChunk, chunk, frames);
    return frames;
  }
  // Welcomed as `agent`, of the host and boot of the one that AgentOptions makes.
  void Connect(RawPeer& peer, const timeline::StreamId& stream) {
    v1::Hello hello;
    hello.set_major(kMajor);
    hello.set_min_major(kMinMajor);
    hello.set_agent_id("agent");
    hello.set_boot_id("agent");
    hello.set_stream_id(std::string(stream.begin(), stream.end()));
    hello.set_first_sequence(1);
    hello.set_next_sequence(1000);
    peer.SendHello(hello);
    ASSERT_EQ(peer.Next(), FrameType::kWelcome);
  }
  uint64_t ConnectionsOf(const std::string& agent) const {
    for (const Collector::AgentStats& stats : collector->stats().agents) {
      if (stats.agent_id == agent) return stats.connections;
    }
    return 0;
  }
};

TEST_F(StreamTakeOver, TheOldConnectionIsToldAndTheNewOneGoesOn) {
  StartCollector(CollectorOptions());
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 10, 1);
  RawPeer old(Path("collector"));
  ASSERT_NO_FATAL_FAILURE(Connect(old, StreamNumber(1)));
  // Four whole ones, and half of the next.
  std::vector<uint8_t> frames = FramesOf(std::span(chunks).first(5));
  frames.resize(frames.size() - chunks[4].size() / 2);
  old.Send(frames);
  ASSERT_TRUE(Eventually([&] { return CollectedChunks().size() == 4; }));
  auto options = AgentOptions(Unix("collector"));
  options.sends_old_streams = true;
  const auto agent = StartAgent(options);
  OfferAll(*agent, chunks);
  ASSERT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  EXPECT_TRUE(old.Ends());
  EXPECT_EQ(old.error.code(), v1::Error::CODE_TAKEN_OVER);
  EXPECT_EQ(CollectedChunks(), chunks);
  EXPECT_EQ(agent->stats().sent_chunks, chunks.size() - 4);
  EXPECT_EQ(agent->stats().connects, 1U);
  EXPECT_EQ(ConnectionsOf("agent"), 1U);
  EXPECT_EQ(collector->stats().agents.at(0).errors, 0U);
}

// What of the old connection still waits for the disk comes before the answer to the new one.
TEST_F(StreamTakeOver, WhatTheOldConnectionHadSentIsWrittenOnce) {
  auto options = CollectorOptions();
  options.files = &files;
  StartCollector(options);
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 10, 1);
  RawPeer old(Path("collector"));
  ASSERT_NO_FATAL_FAILURE(Connect(old, StreamNumber(1)));
  files.hangs = true;
  old.Send(FramesOf(std::span(chunks).first(1)));
  ASSERT_TRUE(Eventually([&] { return collector->stats().pending_bytes > 0; }));
  const uint64_t of_first = collector->stats().pending_bytes;
  old.Send(FramesOf(std::span(chunks).subspan(1, 5)));
  ASSERT_TRUE(Eventually([&] { return collector->stats().pending_bytes > of_first; }));
  auto anew = AgentOptions(Unix("collector"));
  anew.sends_old_streams = true;
  const auto agent = StartAgent(anew);
  OfferAll(*agent, chunks);
  EXPECT_TRUE(old.Ends());
  EXPECT_EQ(old.error.code(), v1::Error::CODE_TAKEN_OVER);
  EXPECT_EQ(agent->stats().connects, 0U);
  files.hangs = false;
  ASSERT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  EXPECT_EQ(CollectedChunks(), chunks);
  EXPECT_EQ(collector->stats().pending_bytes, 0U);
}

// A real agent behind a network that dies at some byte, seen by neither side. Then the agent
// connects anew, or is started anew.
TEST_F(StreamTakeOver, ADeadNetworkLosesAndDoublesNothing) {
  auto options = CollectorOptions();
  options.listen.push_back(Loopback(Address::Kind::kTcp));
  StartCollector(options);
  for (uint32_t seed = 0; seed < kTakeOvers; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const std::string name = "agent" + std::to_string(seed);
    const auto chunks =
        fakes::StreamedChunks(StreamNumber(static_cast<uint8_t>(seed + 1)), 20, seed);
    const size_t half = 5 + random() % 10;
    size_t bytes = 0;
    for (size_t i = 0; i < half; ++i) bytes += chunks[i].size();
    Mischief mischief{.piece_bytes = 1 + random() % 3000, .dead_at = random() % bytes};
    Address listen = collector->addresses()[seed % 2];
    const Address to = listen;
    listen.path = Path("proxy" + std::to_string(seed));
    listen.port = 0;
    const auto proxy =
        fakes::ChaosProxy::Start(listen, to, [&] { return std::exchange(mischief, Mischief{}); });
    auto through = AgentOptions(proxy->address(), name);
    through.spool.directory = Path("spool");
    auto agent = StartAgent(through);
    for (size_t i = 0; i < half; ++i) {
      ASSERT_TRUE(agent->Offer(chunks[i]));
      // So that some are acknowledged before it is dead.
      if (random() % 2 == 0) agent->Finish(milliseconds(5)).IgnoreError();
    }
    ASSERT_TRUE(Eventually(
        [&] { return proxy->dead_connections() == 1 && agent->stats().queue_bytes == 0; }));
    if (seed % 3 == 0) {
      agent->ReloadCredentials();
    } else {
      agent.reset();
      agent = StartAgent(through);
    }
    OfferAll(*agent, {chunks.begin() + static_cast<long>(half), chunks.end()});
    ASSERT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
    EXPECT_EQ(CollectedChunks(name), chunks);
    EXPECT_EQ(ConnectionsOf(name), 1U);
  }
}

}  // namespace
}  // namespace vcpulse::stream

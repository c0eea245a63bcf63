// Agents and a collector over real sockets: what arrives, and who is let in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "monitor/stream/net/follower.h"
#include "monitor/stream/protocol/frame.h"
#include "monitor/timeline/writer.h"
#include "tests/unit/monitor/stream/net/sockets_fixture.h"

namespace vcpulse::stream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class StreamNet : public StreamTest {};

TEST_F(StreamNet, WhatIsSentArrivesOverUnixSockets) {
  StartCollector(CollectorOptions());
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 20, 1);
  OfferAll(*agent, chunks);
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  EXPECT_EQ(CollectedChunks(), chunks);
  EXPECT_EQ(agent->stats().acknowledged_chunks, chunks.size());
  const Collector::Stats stats = collector->stats();
  ASSERT_EQ(stats.agents.size(), 1U);
  EXPECT_EQ(stats.agents[0].agent_id, "agent");
  EXPECT_EQ(stats.agents[0].host_name, "agent-host");
  EXPECT_EQ(stats.agents[0].chunks, chunks.size());
  EXPECT_EQ(stats.agents[0].streams, 1U);
  EXPECT_EQ(stats.pending_bytes, 0U);
}

// A host that was cloned while it records: both are the same agent, with the same stream.
TEST_F(StreamNet, AStreamThatAnotherSendsTooGoesOnUnderANewId) {
  StartCollector(CollectorOptions());
  const auto foreign = fakes::StreamedChunks(StreamNumber(1), 5, 1);
  const auto other = StartAgent(AgentOptions(Unix("collector")));
  OfferAll(*other, foreign);
  ASSERT_TRUE(other->Finish(seconds(20)).ok());
  // By now this one has more than the other.
  const auto own = fakes::StreamedChunks(StreamNumber(1), 30, 2);
  ASSERT_GT(fakes::HeaderOf(own.back()).last_sequence,
            fakes::HeaderOf(foreign.back()).last_sequence);
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  OfferAll(*agent, std::vector(own.begin(), own.end() - 10));
  ASSERT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  // It stays so.
  OfferAll(*agent, std::vector(own.end() - 10, own.end()));
  ASSERT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  EXPECT_EQ(agent->stats().stream_conflicts, 1U);
  EXPECT_EQ(agent->stats().lost_records, 0U);
  EXPECT_TRUE(agent_said.Has("another agent sends under the same stream id")) << agent_said.text();
  std::vector<std::vector<Chunk>> streams;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "collected/agent")) {
    streams.push_back(fakes::ReadCollected(entry.path()).chunks);
  }
  std::ranges::sort(streams, {}, &std::vector<Chunk>::size);
  ASSERT_EQ(streams.size(), 2U);
  EXPECT_EQ(streams[0], foreign);
  ASSERT_EQ(streams[1].size(), own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    const auto header = fakes::HeaderOf(streams[1][i]);
    EXPECT_NE(header.stream_id, StreamNumber(1));
    EXPECT_TRUE(std::ranges::equal(std::span(streams[1][i]).subspan(header.header_bytes),
                                   std::span(own[i]).subspan(header.header_bytes)));
  }
}

// What is longer than kMaxChunkBytes goes in pieces; a record that does not fit into one is lost,
// and what stood before it and comes behind it is not.
TEST_F(StreamNet, LongChunksGoInPieces) {
  std::vector<Chunk> chunks;
  const auto writer = timeline::NewChunkWriter(StreamNumber(1),
                                               [&chunks](std::span<const uint8_t> bytes) {
                                                 chunks.emplace_back(bytes.begin(), bytes.end());
                                                 return absl::OkStatus();
                                               },
                                               {.max_buffered_bytes = 16u << 20});
  std::minstd_rand random(1);
  int64_t mono_ns = 1;
  const auto add = [&](size_t bytes) {
    v1::TimelineRecord record;
    std::string& text = *record.mutable_marker()->mutable_name();
    while (text.size() < bytes) text.push_back(static_cast<char>('0' + random() % 64));
    record.mutable_marker()->set_mono_ns(++mono_ns);
    writer->Add(std::move(record), mono_ns);
  };
  const auto flush = [&] {
    v1::ClockSnapshot clock;
    clock.set_mono_ns(mono_ns);
    ASSERT_TRUE(writer->Flush(clock).ok());
  };
  for (int i = 0; i < 30; ++i) add(100'000);
  flush();
  add(10);
  add(3'000'000);
  flush();
  add(10);
  flush();
  ASSERT_EQ(chunks.size(), 3U);
  ASSERT_GT(chunks[0].size(), 2U * kMaxFrameBytes);
  ASSERT_GT(chunks[1].size(), 2U * kMaxFrameBytes);
  StartCollector(CollectorOptions());
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  OfferAll(*agent, chunks);
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  EXPECT_EQ(agent->stats().lost_records, 1U);
  EXPECT_TRUE(agent_said.Has("records 32 to 32 cannot be sent: ")) << agent_said.text();
  std::vector<uint64_t> collected;
  for (const Chunk& chunk : CollectedChunks()) {
    EXPECT_LE(chunk.size(), kMaxChunkBytes);
    const auto header = fakes::HeaderOf(chunk);
    for (uint64_t i = header.first_sequence; i <= header.last_sequence; ++i) collected.push_back(i);
  }
  std::vector<uint64_t> wanted(33);
  std::iota(wanted.begin(), wanted.end(), 1);
  std::erase(wanted, 32);
  EXPECT_EQ(collected, wanted);
}

TEST_F(StreamNet, TwoAgentsOverTcpKeepApart) {
  auto options = CollectorOptions();
  options.listen = {Loopback(Address::Kind::kTcp), Loopback(Address::Kind::kTcp, 0, "::1")};
  StartCollector(options);
  const auto one = StartAgent(AgentOptions(collector->addresses()[0], "one"));
  const auto two = StartAgent(AgentOptions(collector->addresses()[1], "two"));
  const auto ones = fakes::StreamedChunks(StreamNumber(1), 20, 1);
  const auto twos = fakes::StreamedChunks(StreamNumber(2), 30, 2);
  OfferAll(*one, ones);
  OfferAll(*two, twos);
  ASSERT_TRUE(one->Finish(seconds(20)).ok());
  ASSERT_TRUE(two->Finish(seconds(20)).ok());
  EXPECT_EQ(CollectedChunks("one"), ones);
  EXPECT_EQ(CollectedChunks("two"), twos);
}

TEST_F(StreamNet, PlainTcpStaysOnThisMachineUnlessWanted) {
  auto options = CollectorOptions();
  options.listen = {Loopback(Address::Kind::kTcp, 0, "0.0.0.0")};
  const auto refused = Collector::Start(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--insecure"));
  options.allow_insecure = true;
  StartCollector(options);
  auto agent = AgentOptions(Loopback(Address::Kind::kTcp, 1, "192.0.2.1"));
  EXPECT_THAT(std::string(Uplink::Start(agent).status().message()), HasSubstr("--insecure"));
}

TEST_F(StreamNet, OneAgentIdIsOneHostAtATime) {
  StartCollector(CollectorOptions());
  auto first = StartAgent(AgentOptions(Unix("collector")));
  OfferAll(*first, fakes::StreamedChunks(StreamNumber(1), 2, 1));
  ASSERT_TRUE(first->Finish(seconds(20)).ok());
  auto options = AgentOptions(Unix("collector"));
  options.identity.boot_id = "another machine";
  options.identity.host_name = "impostor";
  const auto second = StartAgent(options);
  const auto chunks = fakes::StreamedChunks(StreamNumber(2), 3, 2);
  OfferAll(*second, chunks);
  EXPECT_TRUE(Eventually([&] { return agent_said.Has("in use by host 'agent-host'"); }))
      << agent_said.text();
  EXPECT_EQ(second->stats().acknowledged_chunks, 0U);
  // Once the first is gone the second one may.
  first.reset();
  EXPECT_TRUE(second->Finish(seconds(20)).ok()) << agent_said.text();
}

TEST_F(StreamNet, TheSameHostMaySendTwoStreamsAtOnce) {
  StartCollector(CollectorOptions());
  const auto one = StartAgent(AgentOptions(Unix("collector")));
  const auto two = StartAgent(AgentOptions(Unix("collector")));
  OfferAll(*one, fakes::StreamedChunks(StreamNumber(1), 3, 1));
  OfferAll(*two, fakes::StreamedChunks(StreamNumber(2), 4, 1));
  EXPECT_TRUE(one->Finish(seconds(20)).ok());
  EXPECT_TRUE(two->Finish(seconds(20)).ok());
  EXPECT_EQ(collector->stats().agents.at(0).connections, 2U);
  EXPECT_EQ(CollectedChunks().size(), 7U);
}

// Ids of streams are the agents' own choice: one that takes another's neither hears of it nor locks
// it out.
TEST_F(StreamNet, OneStreamIdOfTwoAgentsIsTwoStreams) {
  StartCollector(CollectorOptions());
  const auto one = StartAgent(AgentOptions(Unix("collector"), "one"));
  const auto two = StartAgent(AgentOptions(Unix("collector"), "two"));
  const auto of_one = fakes::StreamedChunks(StreamNumber(1), 6, 1);
  const auto of_two = fakes::StreamedChunks(StreamNumber(1), 4, 2);
  ASSERT_NE(of_one.front(), of_two.front());
  OfferAll(*one, {of_one.begin(), of_one.begin() + 3});
  ASSERT_TRUE(one->Finish(seconds(20)).ok());
  OfferAll(*two, of_two);
  ASSERT_TRUE(two->Finish(seconds(20)).ok());
  OfferAll(*one, {of_one.begin() + 3, of_one.end()});
  EXPECT_TRUE(one->Finish(seconds(20)).ok());
  EXPECT_EQ(CollectedChunks("one"), of_one);
  EXPECT_EQ(CollectedChunks("two"), of_two);
  EXPECT_EQ(one->stats().connects, 1U);
}

TEST_F(StreamNet, AStreamThatIsSentAgainIsStoredOnce) {
  StartCollector(CollectorOptions());
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 6, 1);
  auto options = AgentOptions(Unix("collector"));
  options.sends_old_streams = true;
  for (int i = 0; i < 3; ++i) {
    const auto agent = StartAgent(options);
    // At the second time the collector is known to have more than was offered so far.
    ASSERT_TRUE(agent->AwaitConnected(seconds(20)).ok());
    for (const Chunk& chunk : chunks) {
      ASSERT_TRUE(agent->Offer(chunk));
      const bool one_by_one = i == 1;
      ASSERT_TRUE(!one_by_one || agent->Finish(seconds(20)).ok()) << agent_said.text();
    }
    ASSERT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  }
  EXPECT_EQ(CollectedChunks(), chunks);
}

// A host that was cloned while it recorded. What the other one has sent are not its own records,
// also when it has more by now.
TEST_F(StreamNet, WhoeverSendsUnderAnothersStreamIdGoesOnUnderANewOne) {
  for (const size_t made : {2, 9}) {
    SCOPED_TRACE(made);
    StartCollector(CollectorOptions());
    auto first = StartAgent(AgentOptions(Unix("collector")));
    const auto chunks = fakes::StreamedChunks(StreamNumber(1), 6, 1);
    OfferAll(*first, chunks);
    ASSERT_TRUE(first->Finish(seconds(20)).ok());
    first.reset();
    const auto second = StartAgent(AgentOptions(Unix("collector")));
    const auto others = fakes::StreamedChunks(StreamNumber(1), made, 2);
    OfferAll(*second, {others.begin(), others.end() - 1});
    EXPECT_TRUE(Eventually([&] { return agent_said.Has("under a new stream id"); }))
        << agent_said.text();
    OfferAll(*second, {others.end() - 1, others.end()});
    ASSERT_TRUE(second->Finish(seconds(20)).ok()) << agent_said.text();
    EXPECT_EQ(second->stats().acknowledged_chunks, made);
    EXPECT_EQ(second->stats().lost_chunks, 0U);
    // Those of the first, then those of the second but for the id in their headers.
    auto collected = CollectedChunks();
    // Folders of the same second come by their ids, and the new one is random.
    std::ranges::stable_partition(collected, [](const fakes::Chunk& chunk) {
      return fakes::HeaderOf(chunk).stream_id == StreamNumber(1);
    });
    ASSERT_EQ(collected.size(), chunks.size() + made);
    EXPECT_TRUE(std::equal(chunks.begin(), chunks.end(), collected.begin()));
    for (size_t i = 0; i < made; ++i) {
      const fakes::Chunk& got = collected[chunks.size() + i];
      EXPECT_EQ(fakes::HeaderOf(got).first_sequence, fakes::HeaderOf(others[i]).first_sequence);
      EXPECT_TRUE(std::equal(got.begin() + timeline::kChunkHeaderBytes, got.end(),
                             others[i].begin() + timeline::kChunkHeaderBytes, others[i].end()));
      EXPECT_NE(fakes::HeaderOf(got).stream_id, StreamNumber(1));
    }
    collector.reset();
    std::filesystem::remove_all(Path("collected"));
  }
}

TEST_F(StreamNet, TheNextCollectorIsTriedWhereOneIsDown) {
  StartCollector(CollectorOptions());
  auto options = AgentOptions(Unix("nobody"));
  options.addresses.push_back(Unix("collector"));
  const auto agent = StartAgent(options);
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 3, 1);
  OfferAll(*agent, chunks);
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  EXPECT_EQ(CollectedChunks(), chunks);
}

TEST_F(StreamNet, TheNextCollectorIsTriedWhereOneCannotStore) {
  auto full = CollectorOptions();
  full.files = &files;
  files.is_full = true;
  StartCollector(full);
  const auto first = std::move(collector);
  auto second = CollectorOptions();
  second.listen = {Unix("second")};
  second.directory = Path("elsewhere");
  StartCollector(second);
  auto options = AgentOptions(Unix("collector"));
  options.addresses.push_back(Unix("second"));
  const auto agent = StartAgent(options);
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 3, 1);
  OfferAll(*agent, chunks);
  ASSERT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  EXPECT_EQ(fakes::ReadCollected(folder / "elsewhere").chunks, chunks);
}

// A refusal that was the collector's own affair does not change the order of streams.
TEST_F(StreamNet, OlderStreamsComeFirstAlsoAfterAFullDisk) {
  auto options = AgentOptions(Unix("collector"));
  options.spool.directory = Path("spool");
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 5, 1);
  {
    const auto agent = StartAgent(options);
    OfferAll(*agent, chunks);
    ASSERT_TRUE(Eventually([&] { return agent->stats().queue_bytes == 0; }));
  }
  auto full = CollectorOptions();
  full.files = &files;
  files.is_full = true;
  StartCollector(full);
  const auto agent = StartAgent(options);
  OfferAll(*agent, fakes::StreamedChunks(StreamNumber(2), 5, 2));
  ASSERT_TRUE(Eventually([&] { return agent->stats().connects > 2; }));
  files.is_full = false;
  ASSERT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  EXPECT_EQ(CollectedChunks().size(), 10U);
}

// Who makes room by hand may take a folder that is being written.
TEST_F(StreamNet, ARemovedFolderIsNoticedAndBegunAnew) {
  StartCollector(CollectorOptions());
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 10, 1);
  OfferAll(*agent, {chunks.begin(), chunks.begin() + 5});
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  std::filesystem::remove_all(Path("collected/agent"));
  OfferAll(*agent, {chunks.begin() + 5, chunks.end()});
  ASSERT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  EXPECT_TRUE(said.Has("was removed while it was written")) << said.text();
  EXPECT_EQ(CollectedChunks(), std::vector<Chunk>(chunks.begin() + 5, chunks.end()));
}

TEST_F(StreamNet, WithoutACollectorNothingIsLostWhileTheSpoolHoldsIt) {
  auto options = AgentOptions(Unix("collector"));
  options.spool.directory = Path("spool");
  auto agent = StartAgent(options);
  EXPECT_FALSE(agent->AwaitConnected(milliseconds(20)).ok());
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 10, 1);
  OfferAll(*agent, chunks);
  EXPECT_FALSE(agent->Finish(milliseconds(50)).ok());
  // The agent too is started anew: an older stream comes before its new one.
  agent.reset();
  StartCollector(CollectorOptions());
  agent = StartAgent(options);
  const auto later = fakes::StreamedChunks(StreamNumber(2), 5, 2);
  OfferAll(*agent, later);
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  EXPECT_EQ(CollectedChunks().size(), chunks.size() + later.size());
  EXPECT_THAT(fakes::TimelineFiles(Path("spool")), testing::IsEmpty());
}

TEST_F(StreamNet, AStreamThatIsRefusedDoesNotKeepTheOthersBack) {
  StartCollector(CollectorOptions());
  auto options = AgentOptions(Unix("collector"));
  const auto agent = StartAgent(options);
  OfferAll(*agent, fakes::StreamedChunks(StreamNumber(0), 2, 1));  // no id at all: refused
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 3, 1);
  OfferAll(*agent, chunks);
  EXPECT_TRUE(Eventually([&] { return CollectedChunks() == chunks; })) << agent_said.text();
  EXPECT_TRUE(agent_said.Has("without a stream id"));
}

TEST_F(StreamNet, AConnectionCanBeHadBeforeThereIsAnythingToSend) {
  StartCollector(CollectorOptions());
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  EXPECT_TRUE(agent->AwaitConnected(seconds(20)).ok());
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 3, 1);
  OfferAll(*agent, chunks);
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  EXPECT_EQ(CollectedChunks(), chunks);
  EXPECT_EQ(fakes::TimelineFiles(Path("collected")).size(), 1U);
}

// It answers the collector's pings.
TEST_F(StreamNet, AConnectionWithNothingToSendStays) {
  auto options = CollectorOptions();
  options.limits.ping_after_ns = 300'000'000;
  options.limits.idle_ns = 1'500'000'000;
  StartCollector(options);
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  ASSERT_TRUE(agent->AwaitConnected(seconds(20)).ok());
  std::this_thread::sleep_for(seconds(3));
  EXPECT_TRUE(agent->stats().connected) << agent_said.text();
  EXPECT_EQ(agent->stats().connects, 1U);
}

TEST_F(StreamNet, TheUnixSocketIsForItsUserUnlessOthersAreAllowed) {
  StartCollector(CollectorOptions());
  struct stat info{};
  ASSERT_EQ(stat(Path("collector").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  collector.reset();
  auto options = CollectorOptions();
  options.allowed_users = {{12345, {"agent"}}};
  StartCollector(options);
  ASSERT_EQ(stat(Path("collector").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666U);
}

TEST_F(StreamNet, ADirectoryIsOneCollectors) {
  StartCollector(CollectorOptions());
  auto options = CollectorOptions();
  options.listen = {Unix("second")};
  const auto second = Collector::Start(options);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("in use by another collector"));
}

TEST_F(StreamNet, AFollowerGetsWhatBecomesDurable) {
  StartCollector(CollectorOptions());
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  const auto other = StartAgent(AgentOptions(Unix("collector"), "other"));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 8, 1);
  std::vector<Chunk> followed;
  bool sent = false;
  FollowOptions options{.address = Unix("collector"),
                        .identity = {.agent_id = "follower"},
                        .agent_id = "agent",
                        .chunk = [&](const v1::StreamInfo& info, std::span<const uint8_t> chunk) {
                          EXPECT_EQ(info.agent_id(), "agent");
                          followed.emplace_back(chunk.begin(), chunk.end());
                          return absl::OkStatus();
                        }};
  const absl::Status status = Follow(options, [&] {
    if (!sent && collector->stats().followers == 1) {
      sent = true;
      OfferAll(*other, fakes::StreamedChunks(StreamNumber(2), 3, 2));
      OfferAll(*agent, chunks);
    }
    return followed.size() == chunks.size();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(followed, chunks);
}

TEST_F(StreamNet, StoppingAcknowledgesWhatCame) {
  StartCollector(CollectorOptions());
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 200, 1);
  OfferAll(*agent, chunks);
  ASSERT_TRUE(Eventually([&] { return agent->stats().acknowledged_chunks > 0; }));
  EXPECT_TRUE(collector->Stop(seconds(10)));
  EXPECT_TRUE(Eventually([&] { return agent_said.Has("the collector ends"); }))
      << agent_said.text();
  // What the agent knows as acknowledged lies there; what came at the very end may, too.
  EXPECT_LE(agent->stats().acknowledged_chunks, CollectedChunks().size());
  // All that was on disk when it ended is known to have been: the next one goes on behind it.
  const size_t before = CollectedChunks().size();
  collector.reset();
  StartCollector(CollectorOptions());
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  EXPECT_GE(before, 1U);
  EXPECT_EQ(CollectedChunks(), chunks);
}

}  // namespace
}  // namespace vcpulse::stream

// Agent and collector with disks that are full, fail or hang, and a spool that is too small.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/monitor/stream/net/sockets_fixture.h"

namespace vcpulse::stream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class StreamStorage : public StreamTest {};

TEST_F(StreamStorage, AFullDiskIsSaidAndNothingIsAcknowledgedUntilThereIsRoom) {
  auto options = CollectorOptions();
  options.files = &files;
  StartCollector(options);
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 20, 1);
  const auto half = static_cast<long>(chunks.size() / 2);
  OfferAll(*agent, {chunks.begin(), chunks.begin() + half});
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  files.is_full = true;
  OfferAll(*agent, {chunks.begin() + half, chunks.end()});
  EXPECT_TRUE(Eventually([&] { return agent_said.Has("the collector cannot store"); }));
  EXPECT_TRUE(Eventually([&] { return !collector->stats().storage_error.empty(); }));
  EXPECT_TRUE(said.Has("not everything is acknowledged now")) << said.text();
  // It stays so, however often the agent comes back.
  const uint64_t connects = agent->stats().connects;
  ASSERT_TRUE(Eventually([&] { return agent->stats().connects > connects + 3; }));
  EXPECT_FALSE(collector->stats().storage_error.empty());
  EXPECT_FALSE(said.Has("writing works again")) << said.text();
  EXPECT_EQ(agent->stats().acknowledged_chunks, static_cast<uint64_t>(half));
  EXPECT_FALSE(agent->Finish(milliseconds(50)).ok());
  files.is_full = false;
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  EXPECT_EQ(CollectedChunks(), chunks);
  EXPECT_TRUE(Eventually([&] { return collector->stats().storage_error.empty(); }));
  EXPECT_TRUE(said.Has("writing works again"));
}

// A disk that is too slow for the time that there is: what was not written is not acknowledged.
TEST_F(StreamStorage, ACollectorThatCannotWriteInTimeSaysSoWhenItIsStopped) {
  auto options = CollectorOptions();
  options.files = &files;
  StartCollector(options);
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 20, 1);
  files.hangs = true;
  OfferAll(*agent, chunks);
  ASSERT_TRUE(Eventually([&] { return collector->stats().pending_bytes > 0; }));
  std::thread disk([&] {  // writes again once the collector has given up
    EXPECT_TRUE(Eventually([&] { return agent_said.Has("the collector ends"); }));
    files.hangs = false;
  });
  EXPECT_FALSE(collector->Stop(milliseconds(10)));
  disk.join();
  EXPECT_EQ(agent->stats().acknowledged_chunks, 0U);
  collector.reset();
  StartCollector(CollectorOptions());
  ASSERT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  EXPECT_EQ(CollectedChunks(), chunks);
}

// One write fails and the next one would work: it must not be made, or a hole would be left.
TEST_F(StreamStorage, BehindAChunkThatCouldNotBeWrittenNothingIsUntilItIs) {
  auto options = CollectorOptions();
  options.files = &files;
  StartCollector(options);
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 60, 1);
  files.hangs = true;  // so that many are waiting when it fails
  files.appends_until_full = 7;
  OfferAll(*agent, chunks);
  ASSERT_TRUE(Eventually([&] { return agent->stats().sent_chunks > 40; }));
  files.hangs = false;
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  const fakes::Collected collected = fakes::ReadCollected(Path("collected"));
  EXPECT_EQ(collected.chunks, chunks);
  EXPECT_TRUE(collected.lost.empty());
}

TEST_F(StreamStorage, WhatCannotBeSyncedIsNotAcknowledged) {
  auto options = CollectorOptions();
  options.files = &files;
  StartCollector(options);
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 10, 1);
  files.fails_to_sync = true;
  OfferAll(*agent, chunks);
  EXPECT_TRUE(Eventually([&] { return !collector->stats().storage_error.empty(); }));
  EXPECT_EQ(agent->stats().acknowledged_chunks, 0U);
  files.fails_to_sync = false;
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  EXPECT_EQ(CollectedChunks(), chunks);
}

TEST_F(StreamStorage, AFullSpoolDiskLeavesChunksInMemoryAndLosesNothingThatFits) {
  StartCollector(CollectorOptions());
  auto options = AgentOptions(Unix("collector"));
  options.files = &files;
  options.spool.directory = Path("spool");
  const auto agent = StartAgent(options);
  files.is_full = true;
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 20, 1);
  OfferAll(*agent, chunks);
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  EXPECT_TRUE(agent_said.Has("chunks stay in memory")) << agent_said.text();
  EXPECT_EQ(CollectedChunks(), chunks);
}

TEST_F(StreamStorage, WhereTheCollectorIsDownForLongerThanTheSpoolHoldsTheOldestGoAndAreTold) {
  auto options = AgentOptions(Unix("collector"));
  options.spool.directory = Path("spool");
  options.spool.max_disk_bytes = 64 << 10;
  options.spool.segment_bytes = 8 << 10;
  options.spool.max_memory_bytes = 16 << 10;
  const auto agent = StartAgent(options);
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 300, 1, 2000);
  OfferAll(*agent, chunks);
  ASSERT_TRUE(Eventually([&] { return agent->stats().queue_bytes == 0; }));
  EXPECT_GT(agent->stats().lost_chunks, 0U);
  EXPECT_LE(agent->stats().spool_bytes, 64U << 10);
  StartCollector(CollectorOptions());
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  const fakes::Collected collected = fakes::ReadCollected(Path("collected"));
  ASSERT_EQ(collected.lost.size(), 1U);
  EXPECT_EQ(collected.lost[0].first, 1U);
  // The rest is there, without a hole, to the last.
  ASSERT_FALSE(collected.chunks.empty());
  EXPECT_EQ(fakes::HeaderOf(collected.chunks.front()).first_sequence, collected.lost[0].last + 1);
  EXPECT_TRUE(std::equal(collected.chunks.rbegin(), collected.chunks.rend(), chunks.rbegin()));
  EXPECT_EQ(collector->stats().agents.at(0).gaps, 1U);
  EXPECT_EQ(collector->stats().agents.at(0).lost_records, collected.lost[0].last);
}

// At the end of a stream: nothing follows that would tell.
TEST_F(StreamStorage, WhatIsLostLastIsToldBeforeTheAgentEnds) {
  auto options = AgentOptions(Unix("collector"));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 10, 1);
  options.max_queue_bytes = chunks[0].size() + 1000;
  const Chunk large = fakes::StreamedChunks(StreamNumber(1), 40, 1, 5000).back();
  const timeline::ChunkHeader header = fakes::HeaderOf(large);
  const uint64_t lost = header.last_sequence - fakes::HeaderOf(chunks[0]).last_sequence;
  auto agent = StartAgent(options);
  ASSERT_TRUE(agent->Offer(chunks[0]));
  ASSERT_TRUE(Eventually([&] { return agent->stats().waiting_chunks == 1; }));
  EXPECT_FALSE(agent->Offer(large));
  // The spool's count has what lies between them too.
  ASSERT_TRUE(Eventually([&] { return agent->stats().untold_records == lost; }))
      << agent->stats().untold_records;
  StartCollector(CollectorOptions());
  ASSERT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  EXPECT_EQ(agent->stats().untold_records, 0U);
  agent.reset();
  const fakes::Collected collected = fakes::ReadCollected(Path("collected"));
  ASSERT_FALSE(collected.lost.empty());
  EXPECT_EQ(collected.lost.back().last, header.last_sequence);
  EXPECT_EQ(collected.chunks, std::vector<Chunk>{chunks[0]});
}

TEST_F(StreamStorage, WhatIsLostLastAndCannotBeToldIsNotDone) {
  auto options = AgentOptions(Unix("collector"));
  options.max_queue_bytes = 1;
  const auto agent = StartAgent(options);
  const Chunk chunk = fakes::StreamedChunks(StreamNumber(1), 1, 1)[0];
  const timeline::ChunkHeader header = fakes::HeaderOf(chunk);
  const uint64_t records = header.last_sequence - header.first_sequence + 1;
  EXPECT_FALSE(agent->Offer(chunk));
  const absl::Status status = agent->Finish(milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("not acknowledged: the loss of " + std::to_string(records) +
                                 " records; "));
  EXPECT_EQ(agent->stats().untold_records, records);
}

// Collectors of three directories, one after the other. That the second got less than the first
// does not make what the third has another agent's.
TEST_F(StreamStorage, ACollectorThatHasMoreThanTheLastOneWasSentIsNoConflict) {
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 20, 1);
  auto complete = CollectorOptions();
  complete.directory = Path("complete");
  StartCollector(complete);
  auto replayed = AgentOptions(Unix("collector"));
  replayed.sends_old_streams = true;
  {
    const auto replay = StartAgent(replayed);
    OfferAll(*replay, chunks);
    ASSERT_TRUE(replay->Finish(seconds(20)).ok()) << agent_said.text();
  }
  collector.reset();

  files.is_full = true;
  auto full = CollectorOptions();
  full.files = &files;
  StartCollector(full);
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  OfferAll(*agent, chunks);
  ASSERT_TRUE(Eventually([&] { return agent->stats().sent_chunks >= chunks.size(); }));
  collector.reset();
  full.limits.credit_bytes = 1;
  StartCollector(full);
  const uint64_t connects = agent->stats().connects;
  ASSERT_TRUE(Eventually([&] { return agent->stats().connects > connects + 2; }));
  collector.reset();

  StartCollector(complete);
  ASSERT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  EXPECT_EQ(agent->stats().stream_conflicts, 0U) << agent_said.text();
}

}  // namespace
}  // namespace vcpulse::stream

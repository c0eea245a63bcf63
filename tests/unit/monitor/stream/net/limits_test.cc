// What a collector does with peers that are broken, hostile or too many. docs/streaming.md has a
// sentence for each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "monitor/stream/protocol/frame.h"
#include "monitor/stream/protocol/hello.h"
#include "tests/unit/monitor/stream/net/raw_peer.h"
#include "tests/unit/monitor/stream/net/sockets_fixture.h"

namespace vcpulse::stream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// An agent that did no wrong is served beside whatever the test does.
class StreamLimits : public StreamTest {
 protected:
  void ExpectOthersAreServed() {
    static uint8_t number = 100;
    const auto agent = StartAgent(AgentOptions(Unix("collector"), "good"));
    OfferAll(*agent, fakes::StreamedChunks(StreamNumber(number++), 5, 1));
    EXPECT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  }
  Collector::Options Impatient() {
    auto options = CollectorOptions();
    options.limits.handshake_ns = 300'000'000;
    options.limits.frame_ns = 600'000'000;
    options.limits.idle_ns = 1'000'000'000;
    options.limits.ping_after_ns = 300'000'000;
    return options;
  }
};

TEST_F(StreamLimits, WhatIsNoFrameCostsItsOwnConnection) {
  StartCollector(CollectorOptions());
  RawPeer peer(Path("collector"));
  const std::string http = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  peer.Send({reinterpret_cast<const uint8_t*>(http.data()), http.size()});
  EXPECT_TRUE(peer.Ends());
  EXPECT_EQ(peer.error.code(), v1::Error::CODE_MALFORMED);
  EXPECT_TRUE(Eventually([&] { return collector->stats().malformed == 1; }));
  ExpectOthersAreServed();
}

TEST_F(StreamLimits, ALengthOfFourGigabytesIsRefusedBeforeMemoryIsTaken) {
  StartCollector(CollectorOptions());
  RawPeer peer(Path("collector"));
  std::vector<uint8_t> frame;
  AppendFrame(FrameType::kHello, std::span<const uint8_t>{}, frame);
  std::fill_n(frame.begin() + 8, 4, 0xff);
  const uint32_t crc = timeline::Crc32c(std::span(frame).first(16));
  std::memcpy(frame.data() + 16, &crc, sizeof(crc));
  peer.Send(frame);
  EXPECT_TRUE(peer.Ends());
  EXPECT_EQ(peer.error.code(), v1::Error::CODE_MALFORMED);
  EXPECT_THAT(peer.error.reason(), HasSubstr("4294967295"));
  ExpectOthersAreServed();
}

TEST_F(StreamLimits, AZipBombIsRefusedUnopened) {
  // 64 MiB of zeros in a payload of some KiB whose header says 1 MiB. Made before the connection,
  // which must not be silent for as long as that may take.
  const std::vector<uint8_t> zeros(64 << 20);
  std::vector<uint8_t> payload(ZSTD_compressBound(zeros.size()));
  payload.resize(ZSTD_compress(payload.data(), payload.size(), zeros.data(), zeros.size(), 1));
  timeline::ChunkHeader header{.required_features = timeline::kFeatureZstd,
                               .payload_bytes = static_cast<uint32_t>(payload.size()),
                               .content_bytes = 1 << 20,
                               .stream_id = StreamNumber(1),
                               .first_sequence = 1,
                               .last_sequence = 1,
                               .payload_crc = timeline::Crc32c(payload)};
  const auto head = timeline::EncodeChunkHeader(header);
  std::vector<uint8_t> chunk(head.begin(), head.end());
  chunk.insert(chunk.end(), payload.begin(), payload.end());
  std::vector<uint8_t> frame;
  AppendFrame(FrameType::kChunk, chunk, frame);
  StartCollector(CollectorOptions());
  RawPeer peer(Path("collector"));
  peer.SendHello(StreamNumber(1));
  ASSERT_EQ(peer.Next(), FrameType::kWelcome);
  peer.Send(frame);
  EXPECT_TRUE(peer.Ends());
  EXPECT_EQ(peer.error.code(), v1::Error::CODE_MALFORMED);
  EXPECT_THAT(CollectedChunks("raw"), testing::IsEmpty());
  ExpectOthersAreServed();
}

TEST_F(StreamLimits, AnotherMajorVersionIsRefusedInWords) {
  StartCollector(CollectorOptions());
  RawPeer peer(Path("collector"));
  peer.SendHello(StreamNumber(1), "raw", kMajor + 4, kMajor + 3);
  EXPECT_TRUE(peer.Ends());
  EXPECT_EQ(peer.error.code(), v1::Error::CODE_VERSION);
  EXPECT_THAT(peer.error.reason(), HasSubstr("update"));
  // One that speaks ours too is welcome.
  RawPeer newer(Path("collector"));
  newer.SendHello(StreamNumber(1), "raw", kMajor + 4, kMajor);
  EXPECT_EQ(newer.Next(), FrameType::kWelcome);
}

TEST_F(StreamLimits, WhoSaysNothingIsClosed) {
  StartCollector(Impatient());
  RawPeer peer(Path("collector"));
  EXPECT_TRUE(peer.Ends());
  EXPECT_EQ(peer.error.code(), v1::Error::CODE_TIMEOUT);
  ExpectOthersAreServed();
}

TEST_F(StreamLimits, WhoSendsAHelloByteByByteIsClosed) {
  StartCollector(Impatient());
  RawPeer peer(Path("collector"));
  std::vector<uint8_t> hello;
  AppendFrame(FrameType::kHello, std::vector<uint8_t>(60'000), hello);
  bool ended = false;
  for (size_t i = 0; i < hello.size() && !ended; ++i) {
    peer.Send(std::span(hello).subspan(i, 1));
    std::this_thread::sleep_for(milliseconds(1));
    ended = collector->stats().connections == 0 && i > 2;
  }
  EXPECT_TRUE(ended);
  EXPECT_TRUE(peer.Ends());
  ExpectOthersAreServed();
}

TEST_F(StreamLimits, AFrameThatNeverEndsIsClosed) {
  StartCollector(Impatient());
  RawPeer peer(Path("collector"));
  peer.SendHello(StreamNumber(1));
  ASSERT_EQ(peer.Next(), FrameType::kWelcome);
  std::vector<uint8_t> frame;
  AppendFrame(FrameType::kChunk, std::vector<uint8_t>(10'000), frame);
  peer.Send(std::span(frame).first(5'000));
  EXPECT_TRUE(peer.Ends());
  EXPECT_EQ(peer.error.code(), v1::Error::CODE_TIMEOUT);
  EXPECT_THAT(CollectedChunks("raw"), testing::IsEmpty());
}

TEST_F(StreamLimits, AnIdlePeerIsAskedAndThenClosed) {
  StartCollector(Impatient());
  RawPeer peer(Path("collector"));
  peer.SendHello(StreamNumber(1));
  ASSERT_EQ(peer.Next(), FrameType::kWelcome);
  EXPECT_EQ(peer.Next(), FrameType::kPing);
  EXPECT_TRUE(peer.Ends());
  EXPECT_EQ(peer.error.code(), v1::Error::CODE_TIMEOUT);
}

TEST_F(StreamLimits, TooManyConnectionsCostThoseWhoSayNothing) {
  auto options = CollectorOptions();
  options.max_connections = 20;
  StartCollector(options);
  const auto agent = StartAgent(AgentOptions(Unix("collector"), "early"));
  OfferAll(*agent, fakes::StreamedChunks(StreamNumber(1), 3, 1));
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  std::vector<std::unique_ptr<RawPeer>> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.push_back(std::make_unique<RawPeer>(Path("collector")));
    ASSERT_TRUE(crowd.back()->connected());
  }
  EXPECT_TRUE(Eventually([&] { return collector->stats().accepted >= 201; }));
  EXPECT_LE(collector->stats().connections, 20U);
  // Who has said who it is stays, and another one that does is let in.
  ExpectOthersAreServed();
  EXPECT_TRUE(agent->stats().connected);
  EXPECT_EQ(agent->stats().connects, 1U);
}

TEST_F(StreamLimits, WhereAllHaveSaidWhoTheyAreTheNextIsTurnedAway) {
  auto options = CollectorOptions();
  options.max_connections = 2;
  StartCollector(options);
  std::vector<std::unique_ptr<Uplink>> agents;
  for (uint8_t i = 1; i <= 2; ++i) {
    agents.push_back(StartAgent(AgentOptions(Unix("collector"), "agent" + std::to_string(i))));
    OfferAll(*agents.back(), fakes::StreamedChunks(StreamNumber(i), 2, 1));
    ASSERT_TRUE(agents.back()->Finish(seconds(20)).ok());
  }
  RawPeer third(Path("collector"));
  EXPECT_TRUE(third.Ends());
  EXPECT_EQ(third.error.code(), v1::Error::CODE_BUSY);
  EXPECT_EQ(collector->stats().connections, 2U);
}

TEST_F(StreamLimits, ASenderIsSlowedDownToTheRateOfAPeer) {
  auto options = CollectorOptions();
  options.limits.max_bytes_per_second = 50'000;
  options.limits.frame_ns = 100'000'000;  // what it waits for its turn is no fault of its own
  StartCollector(options);
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 100, 1, 2000);
  const auto begin = std::chrono::steady_clock::now();
  OfferAll(*agent, chunks);
  ASSERT_TRUE(agent->Finish(seconds(30)).ok()) << agent_said.text();
  size_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes += chunk.size();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  // One second's worth may come at once, and 32 KiB with the last read.
  EXPECT_GT(took.count(), (static_cast<double>(bytes) - 50'000 - 32'768) / 50'000);
  EXPECT_EQ(CollectedChunks(), chunks);
}

TEST_F(StreamLimits, AnAgentThatManyFollowHasOnlyItsShareOfTheTime) {
  constexpr size_t kFollowers = 30;
  auto options = CollectorOptions();
  options.sync = false;
  options.limits.credit_bytes = 32 << 10;  // what may come before the first of it is sent on
  StartCollector(options);
  std::vector<std::unique_ptr<RawPeer>> followers;
  for (size_t i = 0; i < kFollowers; ++i) {
    followers.push_back(std::make_unique<RawPeer>(Path("collector")));
    followers.back()->SendHelloOfFollower("follower-" + std::to_string(i));
    ASSERT_EQ(followers.back()->Next(), FrameType::kWelcome);
  }
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 50, 1, 60'000);
  const auto begin = std::chrono::steady_clock::now();
  OfferAll(*agent, chunks);
  ASSERT_TRUE(agent->Finish(seconds(60)).ok()) << agent_said.text();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  size_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes += chunk.size();
  // 2 bytes a nanosecond for each follower, and each of them has a share.
  const size_t shares_ns = bytes / 2 * kFollowers * kFollowers;
  EXPECT_GT(took.count(), static_cast<double>(shares_ns) / 2);
  EXPECT_EQ(CollectedChunks(), chunks);
}

// What it sends costs time to look through, of which it has a share too.
TEST_F(StreamLimits, AnAgentThatSendsRubbishHasOnlyItsShareOfTheTime) {
  constexpr size_t kOthers = 30;
  StartCollector(CollectorOptions());
  v1::Ping ping;
  ping.set_nonce(1);
  ping.set_is_answer(true);
  std::vector<uint8_t> pings;
  while (pings.size() < 512 << 10) AppendFrame(FrameType::kPing, ping, pings);
  AppendFrame(FrameType::kAck, v1::Ack(), pings);  // which ends it
  const auto time_of = [&] {
    RawPeer busy(Path("collector"));
    busy.SendHelloOfFollower("busy");
    EXPECT_EQ(busy.Next(), FrameType::kWelcome);
    const auto begin = std::chrono::steady_clock::now();
    busy.Send(pings);
    EXPECT_EQ(busy.Next(), FrameType::kError);
    return std::chrono::steady_clock::now() - begin;
  };
  const auto alone = std::min({time_of(), time_of(), time_of()});
  std::vector<std::unique_ptr<RawPeer>> others;
  for (size_t i = 0; i < kOthers; ++i) {
    others.push_back(std::make_unique<RawPeer>(Path("collector")));
    others.back()->SendHelloOfFollower("other-" + std::to_string(i));
    ASSERT_EQ(others.back()->Next(), FrameType::kWelcome);
  }
  // A thirty-first of the time, for as long as they count as active: 2 s.
  EXPECT_GT(time_of(), 3 * alone);
}

TEST_F(StreamLimits, GapsThatWaitForTheDiskTakeTheirShareOfTheRoom) {
  auto options = CollectorOptions();
  options.files = &files;
  options.limits.credit_bytes = 64 << 10;
  StartCollector(options);
  RawPeer peer(Path("collector"));
  peer.SendHello(StreamNumber(1));
  ASSERT_EQ(peer.Next(), FrameType::kWelcome);
  files.hangs = true;
  std::vector<uint8_t> gaps;
  for (uint64_t i = 1; i <= 100'000; ++i) {
    v1::LostRecords lost;
    lost.set_first_sequence(i);
    lost.set_last_sequence(i);
    AppendFrame(FrameType::kGap, lost, gaps);
  }
  const size_t sent = peer.SendUntilFull(gaps, gaps.size());
  // What a socket holds, and what was read before the brake: not all of it.
  EXPECT_LT(sent, gaps.size() / 2);
  EXPECT_GT(collector->stats().pending_bytes, 64U << 10);
  EXPECT_LT(collector->stats().pending_bytes, 2U << 20);
  files.hangs = false;
  EXPECT_TRUE(Eventually([&] { return collector->stats().pending_bytes == 0; }));
  EXPECT_EQ(collector->stats().agents.at(0).gaps, collector->stats().agents.at(0).lost_records);
}

TEST_F(StreamLimits, AFollowerThatTakesNothingIsClosedAndOneThatDoesIsNot) {
  auto options = CollectorOptions();
  options.memory_bytes = 32 << 20;  // of which a follower may be 1.75 MiB behind
  StartCollector(options);
  RawPeer stalled(Path("collector"));
  stalled.SendHelloOfFollower();
  ASSERT_EQ(stalled.Next(), FrameType::kWelcome);
  RawPeer eager(Path("collector"));
  eager.SendHelloOfFollower();
  ASSERT_EQ(eager.Next(), FrameType::kWelcome);
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  // Texts that do not compress: several MiB in all, and soon enough that nothing else closes it.
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 20, 1, 700'000);
  size_t followed = 0;
  for (const Chunk& chunk : chunks) {
    ASSERT_TRUE(agent->Offer(chunk));
    while (eager.Next() != FrameType::kChunk) ASSERT_EQ(eager.error.reason(), "");
    ++followed;
  }
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  EXPECT_EQ(followed, chunks.size());
  EXPECT_TRUE(Eventually([&] { return collector->stats().followers == 1; }));
  EXPECT_TRUE(said.Has("takes too little")) << said.text();
}

// As root: who else connects is told by the kernel.
TEST_F(StreamLimits, AnotherUserIsRefusedUnlessAllowed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kNobody = 65534;
  std::filesystem::permissions(folder, std::filesystem::perms(0755));
  for (const bool is_allowed : {false, true}) {
    auto options = CollectorOptions();
    options.allowed_users = {{is_allowed ? kNobody : 12345, {"raw"}}};
    StartCollector(options);
    const std::string path = Path("collector");
    const pid_t child = fork();
    if (child == 0) {
      if (setuid(kNobody) != 0) _exit(9);
      RawPeer peer(path);
      peer.SendHello(StreamNumber(1));
      const FrameType first = peer.Next();
      _exit(first == FrameType::kWelcome                         ? 1
            : peer.error.code() == v1::Error::CODE_NOT_PERMITTED ? 2
                                                                 : 3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), is_allowed ? 1 : 2);
    collector.reset();
  }
}

}  // namespace
}  // namespace vcpulse::stream

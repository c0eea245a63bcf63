#include "monitor/stream/protocol/follower_session.h"

#include "monitor/stream/protocol/refusal.h"
#include "tests/unit/monitor/stream/protocol/fixture.h"

namespace vcpulse::stream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr timeline::StreamId kOtherStream = {4, 5, 6};

Bytes InfoOf(const timeline::StreamId& stream, const std::string& agent) {
  v1::StreamInfo info;
  info.set_stream_id(stream.data(), stream.size());
  info.set_agent_id(agent);
  return FrameOf(FrameType::kStreamInfo, info);
}

Bytes ErrorOf(v1::Error::Code code, const std::string& reason = "go away") {
  Bytes frame;
  AppendError(code, reason, frame);
  return frame;
}

Bytes PingOf(uint64_t nonce) {
  v1::Ping ping;
  ping.set_nonce(nonce);
  return FrameOf(FrameType::kPing, ping);
}

Bytes Join(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

const Bytes kWelcome = FrameOf(FrameType::kWelcome, SomeWelcome());

// A follower that notes all events as text.
struct NotingFollower {
  absl::Status Receive(std::span<const uint8_t> bytes, int64_t now_ns = 0) {
    return session.Receive(bytes, now_ns);
  }
  // Its Hello is forgotten, and that it was welcomed.
  void BeWelcomed() {
    session.output().clear();
    ASSERT_TRUE(Receive(kWelcome).ok());
    ASSERT_THAT(events, ElementsAre("welcomed"));
    events.clear();
  }

  absl::Status chunk_answer;
  std::vector<std::string> events;
  FollowerSession session{
      SomeAgent(),
      "wanted",
      {.welcomed = [this] { events.push_back("welcomed"); },
       .chunk =
           [this](const v1::StreamInfo& info, std::span<const uint8_t> chunk) {
             const timeline::ChunkHeader header = HeaderOf(chunk);
             events.push_back(absl::StrCat(info.agent_id(), " ", header.first_sequence, "-",
                                           header.last_sequence, " ", chunk.size()));
             return chunk_answer;
           }},
      SomeClock(7),
      0};
};

// What is noted of a chunk.
std::string Noted(const std::string& agent, uint64_t first, uint64_t last) {
  return absl::StrCat(agent, " ", first, "-", last, " ", ChunkOf(first, last).size());
}

void ExpectLost(NotingFollower& follower, const Bytes& bytes, const std::string& words) {
  const absl::Status status = follower.Receive(bytes);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  EXPECT_FALSE(follower.session.needs_people());
}

// Names are bounded, and so is how many streams are remembered.
TEST(FollowerSession, WhatItIsToldOfStreamsIsBounded) {
  const std::string longest(kMaxNameBytes, 'a');
  NotingFollower well;
  EXPECT_TRUE(well.Receive(Join({kWelcome, InfoOf(kSomeStream, longest)})).ok());
  NotingFollower long_name;
  EXPECT_TRUE(
      absl::IsDataLoss(long_name.Receive(Join({kWelcome, InfoOf(kSomeStream, longest + "a")}))));
  NotingFollower no_id;
  EXPECT_TRUE(absl::IsDataLoss(
      no_id.Receive(Join({kWelcome, FrameOf(FrameType::kStreamInfo, v1::StreamInfo())}))));

  NotingFollower many;
  ASSERT_TRUE(
      many.Receive(Join({kWelcome, InfoOf(kSomeStream, "a"), InfoOf(kOtherStream, "b")})).ok());
  const auto chunk_of = [](const timeline::StreamId& stream) {
    return FrameOf(FrameType::kChunk, ChunkOf(1, 10, stream));
  };
  ASSERT_TRUE(many.Receive(chunk_of(kSomeStream)).ok());
  timeline::StreamId id{9};
  for (size_t i = 0; i < FollowerSession::kMostStreams - 1; ++i) {
    id[1] = static_cast<uint8_t>(i);
    id[2] = static_cast<uint8_t>(i >> 8);
    ASSERT_TRUE(many.Receive(InfoOf(id, "many")).ok());
  }
  EXPECT_TRUE(many.Receive(chunk_of(kSomeStream)).ok());
  EXPECT_TRUE(absl::IsDataLoss(many.Receive(chunk_of(kOtherStream))));  // silent for longest
}

TEST(FollowerSession, HelloSaysWhomItFollowsAndACollectorWelcomesIt) {
  NotingFollower follower;
  NotingCollector collector;
  const Bytes hello = follower.session.output();
  const auto said = TakeFrame(follower.session.output(), FrameType::kHello).As<v1::Hello>();
  EXPECT_EQ(said.role(), v1::Hello::ROLE_FOLLOWER);
  EXPECT_EQ(said.follow_agent_id(), "wanted");
  EXPECT_EQ(said.agent_id(), SomeAgent().agent_id);
  EXPECT_EQ(said.clock().mono_ns(), 7);
  ASSERT_TRUE(collector.Receive(hello).ok());
  EXPECT_FALSE(follower.session.welcomed());
  ASSERT_TRUE(follower.Receive(collector.session.output()).ok());
  EXPECT_TRUE(follower.session.welcomed());
  EXPECT_THAT(follower.events, ElementsAre("welcomed"));
}

TEST(FollowerSession, ChunksComeInOrderWithWhoseTheyAre) {
  NotingFollower follower;
  follower.BeWelcomed();
  ASSERT_TRUE(
      follower
          .Receive(Join({InfoOf(kSomeStream, "a"), FrameOf(FrameType::kChunk, ChunkOf(1, 2)),
                         InfoOf(kOtherStream, "b"),
                         FrameOf(FrameType::kChunk, ChunkOf(1, 9, kOtherStream)),
                         FrameOf(FrameType::kChunk, ChunkOf(3, 4))}))
          .ok());
  EXPECT_THAT(follower.events, ElementsAre(Noted("a", 1, 2), Noted("b", 1, 9), Noted("a", 3, 4)));
  // The stream goes on under another agent's id.
  ASSERT_TRUE(
      follower.Receive(Join({InfoOf(kSomeStream, "c"), FrameOf(FrameType::kChunk, ChunkOf(5, 5))}))
          .ok());
  EXPECT_EQ(follower.events.back(), Noted("c", 5, 5));
}

// Who prints tells what is missing (ChunkPrinting.WhatACollectorLeavesOutWasMissed): a session sees
// one connection, and not what a chunk without records tells as lost.
TEST(FollowerSession, MissedRecordsAreNoReasonToEnd) {
  NotingFollower follower;
  follower.BeWelcomed();
  ASSERT_TRUE(
      follower
          .Receive(Join({InfoOf(kSomeStream, "a"), FrameOf(FrameType::kChunk, ChunkOf(1, 2)),
                         FrameOf(FrameType::kChunk, ChunkOf(5, 6)),
                         FrameOf(FrameType::kChunk, ChunkOf(1, 2))}))
          .ok());
  EXPECT_THAT(follower.events, ElementsAre(Noted("a", 1, 2), Noted("a", 5, 6), Noted("a", 1, 2)));
}

TEST(FollowerSession, ARefusalIsToldInTheCollectorsWords) {
  for (const auto code :
       {v1::Error::CODE_NOT_PERMITTED, v1::Error::CODE_VERSION, v1::Error::CODE_AGENT_ID_IN_USE}) {
    NotingFollower follower;
    const absl::Status status = follower.Receive(ErrorOf(code));
    EXPECT_EQ(status, absl::PermissionDeniedError("the collector says: go away"));
    EXPECT_TRUE(follower.session.needs_people());
    EXPECT_EQ(follower.Receive(kWelcome), status);
    EXPECT_EQ(follower.session.Tick(SomeClock(), 0), status);
    EXPECT_THAT(follower.events, IsEmpty());
  }
  for (const auto code : {v1::Error::CODE_BUSY, v1::Error::CODE_STORAGE, v1::Error::CODE_TIMEOUT,
                          v1::Error::CODE_SHUTDOWN, v1::Error::CODE_MALFORMED}) {
    NotingFollower follower;
    follower.BeWelcomed();
    EXPECT_EQ(follower.Receive(ErrorOf(code)),
              absl::UnavailableError("the collector says: go away"));
    EXPECT_FALSE(follower.session.needs_people());
  }
}

TEST(FollowerSession, AnotherVersionNeedsPeople) {
  v1::Welcome later = SomeWelcome();
  later.set_major(kMajor + 1);
  const Bytes welcome = FrameOf(FrameType::kWelcome, later);
  // Marked as what must not be passed over.
  const Bytes critical = FrameOf(uint8_t{77}, kFlagCritical);
  for (const Bytes& bytes : {welcome, critical, Join({kWelcome, critical})}) {
    NotingFollower follower;
    const absl::Status status = follower.Receive(bytes);
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("update this one"));
    EXPECT_TRUE(follower.session.needs_people());
  }
  NotingFollower follower;
  EXPECT_TRUE(
      follower.Receive(Join({FrameOf(uint8_t{77}, 0), kWelcome, FrameOf(uint8_t{77}, 0)})).ok());
}

TEST(FollowerSession, EverySplitGivesTheSameEvents) {
  const Bytes all =
      Join({kWelcome, InfoOf(kSomeStream, "a"), FrameOf(FrameType::kChunk, ChunkOf(1, 2)),
            PingOf(5), FrameOf(FrameType::kChunk, ChunkOf(4, 4))});
  for (size_t first = 0; first <= all.size(); ++first) {
    NotingFollower follower;
    follower.session.output().clear();
    ASSERT_TRUE(follower.Receive(std::span(all).first(first)).ok()) << first;
    ASSERT_TRUE(follower.Receive(std::span(all).subspan(first)).ok()) << first;
    ASSERT_THAT(follower.events, ElementsAre("welcomed", Noted("a", 1, 2), Noted("a", 4, 4)));
    TakeFrame(follower.session.output(), FrameType::kPing);
  }
  NotingFollower bytewise;
  for (const uint8_t& byte : all) ASSERT_TRUE(bytewise.Receive({&byte, 1}).ok());
  EXPECT_EQ(bytewise.events.size(), 3u);
}

TEST(FollowerSession, GarbageEndsIt) {
  NotingFollower http;
  ExpectLost(http, Bytes{'H', 'T', 'T', 'P'}, "it looks like HTTP");
  EXPECT_TRUE(absl::IsDataLoss(http.Receive(kWelcome)));
  for (const auto type : {FrameType::kWelcome, FrameType::kError}) {
    NotingFollower follower;
    ExpectLost(follower, FrameOf(type, Bytes{0xff}), " is none");
  }
  for (const auto type : {FrameType::kPing, FrameType::kStreamInfo, FrameType::kError}) {
    NotingFollower follower;
    follower.BeWelcomed();
    ExpectLost(follower, FrameOf(type, Bytes{0xff}), " is none");
  }
  NotingFollower no_chunk;
  no_chunk.BeWelcomed();
  ExpectLost(no_chunk, FrameOf(FrameType::kChunk, Bytes(10)), "");
  NotingFollower strange;
  strange.BeWelcomed();
  ExpectLost(strange, FrameOf(FrameType::kChunk, ChunkOf(1, 2)), "a stream that was not told");
  EXPECT_THAT(strange.events, IsEmpty());
}

TEST(FollowerSession, WhatMayNotComeEndsIt) {
  const Bytes chunk = FrameOf(FrameType::kChunk, ChunkOf(1, 2));
  for (const Bytes& early : {InfoOf(kSomeStream, "a"), chunk, PingOf(1)}) {
    NotingFollower follower;
    ExpectLost(follower, early, "may not come here");
  }
  for (const auto type :
       {FrameType::kHello, FrameType::kWelcome, FrameType::kAck, FrameType::kGap}) {
    NotingFollower follower;
    follower.BeWelcomed();
    ExpectLost(follower, FrameOf(type, Bytes()), "may not come here");
  }
}

TEST(FollowerSession, LongFramesAreTakenOnlyOnceWelcomed) {
  const Bytes frame = FrameOf(uint8_t{77}, 0, Bytes(kMaxHandshakeFrameBytes + 1));
  NotingFollower early;
  ExpectLost(early, frame, "longer than may come here");
  NotingFollower follower;
  follower.BeWelcomed();
  EXPECT_TRUE(follower.Receive(frame).ok());
}

TEST(FollowerSession, AnErrorOfItsOwnerEndsIt) {
  NotingFollower follower;
  follower.BeWelcomed();
  follower.chunk_answer = absl::CancelledError("enough");
  const Bytes chunk = FrameOf(FrameType::kChunk, ChunkOf(1, 2));
  EXPECT_EQ(follower.Receive(Join({InfoOf(kSomeStream, "a"), chunk, chunk})),
            absl::CancelledError("enough"));
  EXPECT_EQ(follower.events.size(), 1u);
}

// However diligently its bytes come.
TEST(FollowerSession, WelcomeMustCome) {
  NotingFollower follower;
  EXPECT_TRUE(follower.session.Tick(SomeClock(), 10 * kSecond - 1).ok());
  ASSERT_TRUE(follower.Receive(std::span(kWelcome).first(5), 10 * kSecond - 1).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(follower.session.Tick(SomeClock(), 10 * kSecond)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(follower.Receive(kWelcome)));
  EXPECT_FALSE(follower.session.needs_people());
}

TEST(FollowerSession, PingsKeepItOpenAndSilenceEndsIt) {
  NotingFollower follower;
  follower.BeWelcomed();
  EXPECT_TRUE(follower.session.Tick(SomeClock(66), 20 * kSecond).ok());
  EXPECT_THAT(follower.session.output(), IsEmpty());
  // One answer for all that asked in one go; none to an answer.
  ASSERT_TRUE(follower.Receive(Join({PingOf(8), PingOf(9)}), 20 * kSecond).ok());
  const auto answer = TakeFrame(follower.session.output(), FrameType::kPing).As<v1::Ping>();
  EXPECT_TRUE(answer.is_answer());
  EXPECT_EQ(answer.nonce(), 9u);
  EXPECT_EQ(answer.clock().mono_ns(), 66);
  ASSERT_TRUE(follower.Receive(FrameOf(FrameType::kPing, answer), 20 * kSecond).ok());
  EXPECT_THAT(follower.session.output(), IsEmpty());
  // Part of a long frame is no silence.
  ASSERT_TRUE(follower.Receive(std::span(kWelcome).first(5), 30 * kSecond).ok());
  EXPECT_TRUE(follower.session.Tick(SomeClock(), 90 * kSecond - 1).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(follower.session.Tick(SomeClock(), 90 * kSecond)));
}

}  // namespace
}  // namespace vcpulse::stream

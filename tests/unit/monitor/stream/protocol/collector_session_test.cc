#include <limits>

#include "tests/unit/monitor/stream/protocol/fixture.h"

namespace vcpulse::stream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kNoSequence = std::numeric_limits<uint64_t>::max();

// That the connection ended with `status`, and what the peer is told.
void ExpectRefused(NotingCollector& collector, const absl::Status& status,
                   absl::StatusCode status_code, v1::Error::Code code) {
  EXPECT_EQ(status.code(), status_code) << status;
  const auto error = TakeFrame(collector.session.output(), FrameType::kError).As<v1::Error>();
  EXPECT_EQ(error.code(), code) << error.reason();
  EXPECT_EQ(error.reason(), status.message());
  // Nothing more is taken.
  const std::vector<std::string> before = collector.events;
  EXPECT_EQ(collector.Receive(FrameOf(FrameType::kChunk, ChunkOf(1, 2))), status);
  EXPECT_EQ(collector.session.Tick(SomeClock(), 1), status);
  collector.session.Ack(1);
  EXPECT_EQ(collector.events, before);
  EXPECT_THAT(collector.session.output(), IsEmpty());
}

void ExpectHelloRefused(const v1::Hello& hello, absl::StatusCode status_code, v1::Error::Code code,
                        const std::string& words) {
  NotingCollector collector;
  const absl::Status status = collector.Receive(FrameOf(FrameType::kHello, hello));
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  EXPECT_THAT(collector.events, IsEmpty());
  ExpectRefused(collector, status, status_code, code);
}

void ExpectMalformed(const v1::Hello& hello, const std::string& words) {
  ExpectHelloRefused(hello, absl::StatusCode::kDataLoss, v1::Error::CODE_MALFORMED, words);
}

TEST(CollectorHello, WelcomeTellsTheLimits) {
  SessionLimits limits;
  limits.credit_bytes = 12345;
  limits.max_bytes_per_second = 777;
  limits.idle_ns = 3 * kSecond;
  NotingCollector collector(limits);
  collector.durable = 41;
  ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kHello, SomeHello())).ok());
  const auto welcome = TakeFrame(collector.session.output(), FrameType::kWelcome).As<v1::Welcome>();
  EXPECT_EQ(welcome.major(), kMajor);
  EXPECT_EQ(welcome.minor(), kMinor);
  EXPECT_EQ(welcome.durable_sequence(), 41u);
  EXPECT_EQ(welcome.credit_bytes(), 12345u);
  EXPECT_EQ(welcome.max_frame_bytes(), kMaxFrameBytes);
  EXPECT_EQ(welcome.max_bytes_per_second(), 777u);
  EXPECT_EQ(welcome.idle_ms(), 3000u);
  EXPECT_EQ(welcome.tool_version(), "9.9");
  EXPECT_EQ(welcome.host_name(), "collector");
  EXPECT_EQ(collector.session.received(), 41u);
}

TEST(CollectorHello, VersionsThatAreNotSpokenAreNamed) {
  v1::Hello hello = SomeHello();
  hello.set_major(kMajor + 2);
  hello.set_min_major(kMajor + 1);
  ExpectHelloRefused(hello, absl::StatusCode::kUnimplemented, v1::Error::CODE_VERSION,
                     absl::StrCat("the agent speaks versions ", kMajor + 1, " to ", kMajor + 2,
                                  " of the protocol, the collector only version ", kMajor,
                                  ": update vcpulse on the collector"));
  hello.set_min_major(0);
  ExpectMalformed(hello, "of the protocol");
  hello.set_major(0);
  ExpectMalformed(hello, "of the protocol");
  hello.set_major(kMajor);
  hello.set_min_major(kMajor + 1);
  ExpectMalformed(hello, "of the protocol");
}

TEST(CollectorHello, LaterReleasesThatSpeakOursAreWelcome) {
  v1::Hello hello = SomeHello();
  hello.set_major(kMajor + 5);
  hello.set_minor(99);
  hello.GetReflection()->MutableUnknownFields(&hello)->AddVarint(1000, 1);
  NotingCollector collector;
  ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kHello, hello)).ok());
  const auto welcome = TakeFrame(collector.session.output(), FrameType::kWelcome).As<v1::Welcome>();
  EXPECT_EQ(welcome.major(), kMajor);
  EXPECT_EQ(welcome.minor(), kMinor);
  const v1::Hello& seen = collector.last_hello;
  EXPECT_TRUE(seen.GetReflection()->GetUnknownFields(seen).empty());
}

TEST(CollectorHello, TextsAreChecked) {
  v1::Hello hello = SomeHello();
  hello.set_agent_id("../x");
  ExpectMalformed(hello, "cannot name an agent");
  hello.clear_agent_id();
  ExpectMalformed(hello, "cannot name an agent");
  hello = SomeHello();
  hello.set_host_name(std::string(257, 'h'));
  ExpectMalformed(hello, "host name has more than 256 bytes");
  hello = SomeHello();
  hello.set_boot_id(std::string(257, 'h'));
  ExpectMalformed(hello, "boot id has more than 256 bytes");
  hello = SomeHello();
  hello.set_tool_version(std::string(257, 'h'));
  ExpectMalformed(hello, "tool version has more than 256 bytes");
  hello.set_tool_version(std::string(256, 'h'));
  NotingCollector collector;
  EXPECT_TRUE(collector.Receive(FrameOf(FrameType::kHello, hello)).ok());
}

TEST(CollectorHello, StreamIsChecked) {
  v1::Hello hello = SomeHello();
  hello.set_stream_id(std::string(16, '\0'));
  ExpectMalformed(hello, "without a stream id");
  hello.set_stream_id(std::string(15, 'x'));
  ExpectMalformed(hello, "without a stream id");
  hello.set_stream_id(std::string(17, 'x'));
  ExpectMalformed(hello, "without a stream id");
  hello = SomeHello();
  hello.set_first_sequence(0);
  ExpectMalformed(hello, "holds records 0");
  hello.set_first_sequence(8);
  hello.set_next_sequence(7);
  ExpectMalformed(hello, "holds records 8 up to before 7");
}

TEST(CollectorHello, FollowersNeedNoStreamAndMayHaveNoName) {
  NotingCollector collector;
  EXPECT_TRUE(collector.Receive(FrameOf(FrameType::kHello, FollowerHello())).ok());
  EXPECT_TRUE(collector.session.welcomed());
  v1::Hello hello = FollowerHello();
  hello.set_agent_id("..");
  ExpectMalformed(hello, "cannot name an agent");
  hello = FollowerHello();
  hello.set_follow_agent_id("..");
  ExpectMalformed(hello, "cannot name an agent");
  hello = SomeHello();
  hello.set_role(static_cast<v1::Hello::Role>(7));
  ExpectHelloRefused(hello, absl::StatusCode::kUnimplemented, v1::Error::CODE_VERSION, "(role 7)");
}

TEST(CollectorHello, FirstFrameMustBeIt) {
  const auto of = [](FrameType type) { return FrameOf(type, Bytes()); };
  for (const Bytes& frame :
       {of(FrameType::kWelcome), of(FrameType::kChunk), of(FrameType::kAck), of(FrameType::kGap),
        of(FrameType::kPing), of(FrameType::kStreamInfo), FrameOf(uint8_t{77}, uint8_t{0})}) {
    NotingCollector collector;
    ExpectRefused(collector, collector.Receive(frame), absl::StatusCode::kDataLoss,
                  v1::Error::CODE_MALFORMED);
  }
  NotingCollector collector;
  ExpectRefused(collector, collector.Receive(FrameOf(FrameType::kHello, Bytes{0xff})),
                absl::StatusCode::kDataLoss, v1::Error::CODE_MALFORMED);
}

TEST(CollectorHello, MayBeAnsweredLater) {
  NotingCollector collector;
  collector.welcomes = false;
  ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kHello, SomeHello())).ok());
  EXPECT_FALSE(collector.session.welcomed());
  EXPECT_THAT(collector.session.output(), IsEmpty());
  collector.session.Welcome(0, "1", "c");
  ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kChunk, ChunkOf(1, 2))).ok());
  EXPECT_EQ(collector.session.received(), 2u);
}

TEST(CollectorHello, NoChunkBeforeTheAnswer) {
  for (const Bytes& frame :
       {FrameOf(FrameType::kChunk, ChunkOf(1, 2)), FrameOf(FrameType::kGap, Lost(1, 2))}) {
    NotingCollector collector;
    collector.welcomes = false;
    ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kHello, SomeHello())).ok());
    ExpectRefused(collector, collector.Receive(frame), absl::StatusCode::kDataLoss,
                  v1::Error::CODE_MALFORMED);
  }
}

TEST(CollectorHello, OwnerMayRefuse) {
  NotingCollector collector;
  collector.welcomes = false;
  ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kHello, SomeHello())).ok());
  collector.session.Refuse(v1::Error::CODE_AGENT_ID_IN_USE, "host-b sends\nunder this id");
  const auto error = TakeFrame(collector.session.output(), FrameType::kError).As<v1::Error>();
  EXPECT_EQ(error.code(), v1::Error::CODE_AGENT_ID_IN_USE);
  EXPECT_EQ(error.reason(), "host-b sends?under this id");
  // Only the first counts, and nothing more is taken or sent.
  collector.session.Refuse(v1::Error::CODE_BUSY, "");
  collector.session.Welcome(0, "1", "c");
  EXPECT_TRUE(collector.Receive(FrameOf(FrameType::kChunk, ChunkOf(1, 2))).ok());
  EXPECT_TRUE(collector.session.Tick(SomeClock(), 1000 * kSecond).ok());
  EXPECT_THAT(collector.session.output(), IsEmpty());
  EXPECT_FALSE(collector.session.welcomed());
  EXPECT_EQ(collector.events.size(), 1u);
}

// The errors of the events reach the peer under a code of their own.
TEST(CollectorHello, ErrorsOfTheOwnerEndIt) {
  const std::vector<std::pair<absl::Status, v1::Error::Code>> cases = {
      {absl::PermissionDeniedError("not this id"), v1::Error::CODE_NOT_PERMITTED},
      {absl::UnauthenticatedError("not this id"), v1::Error::CODE_NOT_PERMITTED},
      {absl::AlreadyExistsError("in use"), v1::Error::CODE_AGENT_ID_IN_USE},
      {absl::UnavailableError("too many"), v1::Error::CODE_BUSY},
      {absl::ResourceExhaustedError("disk full"), v1::Error::CODE_STORAGE}};
  for (const auto& [status, code] : cases) {
    NotingCollector collector;
    collector.welcomes = false;
    collector.hello_answer = status;
    ExpectRefused(collector, collector.Receive(FrameOf(FrameType::kHello, SomeHello())),
                  status.code(), code);
  }
  NotingCollector collector;
  collector.BeWelcomed();
  collector.chunk_answer = absl::ResourceExhaustedError("disk full");
  ExpectRefused(collector, collector.Receive(FrameOf(FrameType::kChunk, ChunkOf(1, 2))),
                absl::StatusCode::kResourceExhausted, v1::Error::CODE_STORAGE);
  NotingCollector other;
  other.BeWelcomed();
  other.gap_answer = absl::InternalError("broken");
  ExpectRefused(other, other.Receive(FrameOf(FrameType::kGap, Lost(1, 2))),
                absl::StatusCode::kInternal, v1::Error::CODE_STORAGE);
}

TEST(CollectorFrames, SecondHelloAndOthersMayNotCome) {
  for (const FrameType type :
       {FrameType::kHello, FrameType::kWelcome, FrameType::kAck, FrameType::kStreamInfo}) {
    NotingCollector collector;
    collector.BeWelcomed();
    const Bytes frame =
        type == FrameType::kHello ? FrameOf(type, SomeHello()) : FrameOf(type, Bytes());
    ExpectRefused(collector, collector.Receive(frame), absl::StatusCode::kDataLoss,
                  v1::Error::CODE_MALFORMED);
  }
  for (const FrameType type :
       {FrameType::kPing, FrameType::kGap, FrameType::kChunk, FrameType::kError}) {
    NotingCollector collector;
    collector.BeWelcomed();
    ExpectRefused(collector, collector.Receive(FrameOf(type, Bytes{0xff})),
                  absl::StatusCode::kDataLoss, v1::Error::CODE_MALFORMED);
  }
}

TEST(CollectorFrames, FollowersMayOnlyPing) {
  for (const Bytes& frame :
       {FrameOf(FrameType::kChunk, ChunkOf(1, 2)), FrameOf(FrameType::kGap, Lost(1, 2)),
        FrameOf(uint8_t{3}, uint8_t{0}, Bytes(kMaxHandshakeFrameBytes + 1))}) {
    NotingCollector collector;
    collector.BeWelcomed(FollowerHello());
    ExpectRefused(collector, collector.Receive(frame), absl::StatusCode::kDataLoss,
                  v1::Error::CODE_MALFORMED);
  }
  NotingCollector collector;
  collector.BeWelcomed(FollowerHello());
  ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kPing, v1::Ping())).ok());
  TakeFrame(collector.session.output(), FrameType::kPing);
}

TEST(CollectorFrames, FollowersHaveNothingLongToSay) {
  NotingCollector collector;
  collector.BeWelcomed(FollowerHello());
  EXPECT_TRUE(
      collector.Receive(FrameOf(uint8_t{77}, uint8_t{0}, Bytes(kMaxHandshakeFrameBytes))).ok());
  EXPECT_TRUE(absl::IsDataLoss(
      collector.Receive(FrameOf(uint8_t{77}, uint8_t{0}, Bytes(kMaxHandshakeFrameBytes + 1)))));
}

// Refused in the middle of what came together: nothing is answered behind the Error frame.
TEST(CollectorFrames, RefusalIsTheLastWord) {
  CollectorSession* self = nullptr;
  int chunks = 0;
  CollectorSession session({},
                           {.hello =
                                [&](const v1::Hello&) {
                                  self->Welcome(3, "1", "c");
                                  return absl::OkStatus();
                                },
                            .chunk =
                                [&](const timeline::ChunkHeader&, std::span<const uint8_t>) {
                                  ++chunks;
                                  self->Refuse(v1::Error::CODE_TAKEN_OVER, "");
                                  return absl::OkStatus();
                                }},
                           0);
  self = &session;
  ASSERT_TRUE(session.Receive(FrameOf(FrameType::kHello, SomeHello()), 0).ok());
  session.output().clear();
  Bytes all = FrameOf(FrameType::kPing, v1::Ping());
  for (const uint64_t first : {1, 4, 6})
    AppendFrame(FrameType::kChunk, ChunkOf(first, first + 1), all);
  EXPECT_TRUE(session.Receive(all, 0).ok());
  EXPECT_EQ(chunks, 1);
  TakeFrame(session.output(), FrameType::kError);
}

TEST(CollectorFrames, FollowersAreSentStreams) {
  NotingCollector collector;
  collector.BeWelcomed(FollowerHello());
  v1::StreamInfo info;
  info.set_agent_id("host-a");
  collector.session.SendStreamInfo(info);
  const Bytes chunk = ChunkOf(1, 3);
  AppendFrame(FrameType::kChunk, chunk, collector.session.output());
  const auto frames = TakeFrames(collector.session.output());
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_TRUE(frames[0].Is(FrameType::kStreamInfo));
  EXPECT_EQ(frames[0].As<v1::StreamInfo>().agent_id(), "host-a");
  EXPECT_TRUE(frames[1].Is(FrameType::kChunk));
  EXPECT_EQ(frames[1].payload, chunk);
  collector.session.Refuse(v1::Error::CODE_SHUTDOWN, "");
  collector.session.output().clear();
  collector.session.SendStreamInfo(info);
  EXPECT_THAT(collector.session.output(), IsEmpty());
}

TEST(CollectorFrames, UnknownOnesArePassedOverUnlessTheyAreCritical) {
  NotingCollector collector;
  collector.BeWelcomed();
  EXPECT_TRUE(collector.Receive(FrameOf(uint8_t{77}, uint8_t{0xfe}, Bytes(1000))).ok());
  const absl::Status status = collector.Receive(FrameOf(uint8_t{77}, kFlagCritical));
  EXPECT_THAT(std::string(status.message()), HasSubstr("update vcpulse on the collector"));
  ExpectRefused(collector, status, absl::StatusCode::kUnimplemented, v1::Error::CODE_VERSION);
}

TEST(CollectorFrames, LongOnesAreTakenOnlyOnceWelcomed) {
  const Bytes frame = FrameOf(uint8_t{77}, uint8_t{0}, Bytes(kMaxHandshakeFrameBytes + 1));
  NotingCollector welcomed;
  welcomed.BeWelcomed();
  EXPECT_TRUE(welcomed.Receive(frame).ok());
  NotingCollector waiting;
  waiting.welcomes = false;
  ASSERT_TRUE(waiting.Receive(FrameOf(FrameType::kHello, SomeHello())).ok());
  EXPECT_TRUE(absl::IsDataLoss(waiting.Receive(frame)));
}

TEST(CollectorFrames, PeersErrorEndsItWithoutAnAnswer) {
  v1::Error error;
  error.set_reason("my disk\nbroke");
  NotingCollector collector;
  collector.BeWelcomed();
  const absl::Status status = collector.Receive(FrameOf(FrameType::kError, error));
  EXPECT_EQ(status, absl::UnavailableError("the peer says: my disk?broke"));
  EXPECT_THAT(collector.session.output(), IsEmpty());
  EXPECT_EQ(collector.Receive({}), status);
}

TEST(CollectorFrames, PingsAreAnsweredOnceForAllThatCameTogether) {
  NotingCollector collector;
  collector.BeWelcomed();
  Bytes pings;
  for (uint64_t nonce : {5, 6, 7}) {
    v1::Ping ping;
    ping.set_nonce(nonce);
    *ping.mutable_clock() = SomeClock(static_cast<int64_t>(nonce));
    AppendFrame(FrameType::kPing, ping, pings);
  }
  ASSERT_TRUE(collector.Receive(pings).ok());
  const auto answer = TakeFrame(collector.session.output(), FrameType::kPing).As<v1::Ping>();
  EXPECT_TRUE(answer.is_answer());
  EXPECT_EQ(answer.nonce(), 7u);
  EXPECT_THAT(collector.events, ElementsAre("clock 5", "clock 6", "clock 7"));
  ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kPing, answer)).ok());
  EXPECT_THAT(collector.session.output(), IsEmpty());
}

TEST(CollectorAck, OnlyWhatIsMoreThanWasAcknowledged) {
  NotingCollector collector;
  collector.durable = 4;
  collector.session.Ack(3);  // before the Hello: nothing
  EXPECT_THAT(collector.session.output(), IsEmpty());
  collector.BeWelcomed();
  ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kChunk, ChunkOf(5, 9))).ok());
  EXPECT_THAT(collector.session.output(), IsEmpty());  // nothing is durable yet
  for (const uint64_t old : {0, 3, 4}) collector.session.Ack(old);
  EXPECT_THAT(collector.session.output(), IsEmpty());
  collector.session.Ack(7);
  EXPECT_EQ(TakeFrame(collector.session.output(), FrameType::kAck).As<v1::Ack>().durable_sequence(),
            7u);
  collector.session.Ack(7);
  EXPECT_THAT(collector.session.output(), IsEmpty());
  EXPECT_BUG(collector.session.Ack(10), "an Ack of record 10, received up to 9");
}

TEST(CollectorAck, WelcomeAnswersOneHello) {
  NotingCollector collector;
  EXPECT_BUG(collector.session.Welcome(0, "", ""), "once");
  collector.BeWelcomed();
  EXPECT_BUG(collector.session.Welcome(0, "", ""), "once");
  NotingCollector other;
  other.durable = kNoSequence;
  EXPECT_BUG((void)other.Receive(FrameOf(FrameType::kHello, SomeHello())), "no record");
}

}  // namespace
}  // namespace vcpulse::stream

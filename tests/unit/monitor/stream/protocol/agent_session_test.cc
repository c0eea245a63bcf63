#include <limits>

#include "tests/unit/monitor/stream/protocol/fixture.h"

namespace vcpulse::stream {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMostSequence = std::numeric_limits<uint64_t>::max();

v1::Ack AckOf(uint64_t durable) {
  v1::Ack ack;
  ack.set_durable_sequence(durable);
  return ack;
}

// An agent that holds records 1 to 99 and is welcomed, its Hello forgotten.
struct WelcomedAgent {
  explicit WelcomedAgent(const v1::Welcome& welcome = SomeWelcome()) {
    session.output().clear();
    EXPECT_TRUE(session.Receive(FrameOf(FrameType::kWelcome, welcome), 0).ok());
    EXPECT_TRUE(session.welcomed());
  }
  // Pretends that the chunk has so many bytes.
  void Send(uint64_t first, uint64_t last, size_t bytes) {
    session.SendChunk({.first_sequence = first, .last_sequence = last}, Bytes(bytes), 0);
    session.output().clear();
  }
  absl::Status Ack(uint64_t durable) {
    return session.Receive(FrameOf(FrameType::kAck, AckOf(durable)), 0);
  }

  AgentSession session{
      SomeAgent(), {.stream_id = kSomeStream, .next_sequence = 100}, SomeClock(), 0};
};

AgentSession Unanswered(const AgentSession::Held& held = {.stream_id = kSomeStream}) {
  return AgentSession(SomeAgent(), held, SomeClock(), 0);
}

absl::Status AnswerWith(AgentSession& agent, const v1::Welcome& welcome) {
  agent.output().clear();
  return agent.Receive(FrameOf(FrameType::kWelcome, welcome), 0);
}

TEST(AgentSession, HelloSaysWhoItIsAndWhatItHolds) {
  AgentIdentity identity = SomeAgent();
  identity.host_name = std::string(300, 'h') + "\n";
  identity.boot_id = "\xff\n";
  AgentSession agent(identity, {.stream_id = kSomeStream, .first_sequence = 3, .next_sequence = 9},
                     SomeClock(77), 0);
  const auto hello = TakeFrame(agent.output(), FrameType::kHello).As<v1::Hello>();
  EXPECT_EQ(hello.major(), kMajor);
  EXPECT_EQ(hello.minor(), kMinor);
  EXPECT_EQ(hello.min_major(), kMinMajor);
  EXPECT_EQ(hello.role(), v1::Hello::ROLE_AGENT);
  EXPECT_EQ(hello.agent_id(), "host-a.example");
  EXPECT_EQ(hello.host_name(), std::string(256, 'h'));  // longer ones are refused
  EXPECT_EQ(hello.boot_id(), "??");
  EXPECT_EQ(hello.tool_version(), "1.2.3");
  EXPECT_EQ(hello.clock().mono_ns(), 77);
  EXPECT_EQ(hello.stream_id(), std::string(kSomeStream.begin(), kSomeStream.end()));
  EXPECT_EQ(hello.first_sequence(), 3u);
  EXPECT_EQ(hello.next_sequence(), 9u);
}

TEST(AgentSession, GoesOnBehindWhatIsDurable) {
  AgentSession agent =
      Unanswered({.stream_id = kSomeStream, .first_sequence = 8, .next_sequence = 20});
  EXPECT_FALSE(agent.welcomed());
  EXPECT_EQ(agent.durable(), 0u);
  ASSERT_TRUE(AnswerWith(agent, SomeWelcome(5)).ok());
  EXPECT_EQ(agent.durable(), 5u);
  EXPECT_EQ(agent.next_to_send(), 6u);  // the owner tells 6 and 7 as a gap
}

TEST(AgentSession, AnotherMajorIsToldInWords) {
  for (const uint32_t major : {0u, kMajor + 1}) {
    AgentSession agent = Unanswered();
    v1::Welcome welcome = SomeWelcome();
    welcome.set_major(major);
    const absl::Status status = AnswerWith(agent, welcome);
    EXPECT_TRUE(absl::IsUnimplemented(status));
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr(absl::StrCat("speaks version ", major, " of the protocol, this vcpulse version ",
                               kMajor, ": update ", major == 0 ? "the collector's" : "this one")));
    EXPECT_FALSE(agent.welcomed());
    EXPECT_FALSE(agent.MaySend(1));
    // The collector is told too.
    const auto error = TakeFrame(agent.output(), FrameType::kError).As<v1::Error>();
    EXPECT_EQ(error.code(), v1::Error::CODE_VERSION);
    EXPECT_EQ(error.reason(), status.message());
  }
}

TEST(AgentSession, NewerMinorAndUnknownFieldsAreTolerated) {
  AgentSession agent = Unanswered();
  v1::Welcome welcome = SomeWelcome();
  welcome.set_minor(99);
  welcome.GetReflection()->MutableUnknownFields(&welcome)->AddVarint(1000, 1);
  EXPECT_TRUE(AnswerWith(agent, welcome).ok());
  EXPECT_EQ(agent.welcome().minor(), 99u);
}

TEST(AgentSession, WelcomeThatLetsNothingBeSentIsRefused) {
  v1::Welcome welcome = SomeWelcome();
  welcome.set_credit_bytes(0);
  AgentSession poor = Unanswered();
  EXPECT_TRUE(absl::IsDataLoss(AnswerWith(poor, welcome)));
  EXPECT_FALSE(poor.welcomed());

  welcome = SomeWelcome();
  welcome.set_max_frame_bytes(4095);
  AgentSession narrow = Unanswered();
  EXPECT_TRUE(absl::IsDataLoss(AnswerWith(narrow, welcome)));
  welcome.set_max_frame_bytes(4096);
  AgentSession enough = Unanswered();
  EXPECT_TRUE(AnswerWith(enough, welcome).ok());
  EXPECT_EQ(enough.welcome().max_frame_bytes(), 4096u);
  // More than a frame of ours may be is no use.
  welcome.set_max_frame_bytes(kMaxFrameBytes + 1);
  AgentSession wide = Unanswered();
  EXPECT_TRUE(AnswerWith(wide, welcome).ok());
  EXPECT_EQ(wide.welcome().max_frame_bytes(), kMaxFrameBytes);
}

TEST(AgentSession, CollectorThatHasMoreThanWasSentIsRefusedInWords) {
  // However much more of the stream there is by now.
  AgentSession::Held held{
      .stream_id = kSomeStream, .first_sequence = 5, .next_sequence = 1000, .last_sent = 9};
  AgentSession all = Unanswered(held);
  EXPECT_TRUE(AnswerWith(all, SomeWelcome(9)).ok());
  EXPECT_EQ(all.next_to_send(), 10u);
  AgentSession copied = Unanswered(held);
  const absl::Status status = AnswerWith(copied, SomeWelcome(10));
  EXPECT_TRUE(absl::IsAlreadyExists(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("another agent sends under the same stream"));
  EXPECT_FALSE(copied.welcomed());
  // What is left of an earlier life may have been sent further.
  held.last_sent = std::nullopt;
  AgentSession recovered = Unanswered(held);
  EXPECT_TRUE(AnswerWith(recovered, SomeWelcome(10)).ok());
  EXPECT_EQ(recovered.durable(), 10u);
  AgentSession overflowing = Unanswered(held);
  EXPECT_TRUE(absl::IsDataLoss(AnswerWith(overflowing, SomeWelcome(kMostSequence))));
}

TEST(AgentSession, CreditBoundsWhatIsUnderWay) {
  WelcomedAgent agent;                       // 1000 bytes
  EXPECT_TRUE(agent.session.MaySend(5000));  // one chunk may always be
  agent.Send(1, 2, 600);
  EXPECT_TRUE(agent.session.MaySend(400));
  EXPECT_FALSE(agent.session.MaySend(401));
  agent.Send(3, 4, 400);
  EXPECT_FALSE(agent.session.MaySend(1));
  ASSERT_TRUE(agent.Ack(3).ok());  // in the middle of the second chunk: only the first is done
  EXPECT_EQ(agent.session.durable(), 3u);
  EXPECT_TRUE(agent.session.MaySend(600));
  EXPECT_FALSE(agent.session.MaySend(601));
  ASSERT_TRUE(agent.Ack(4).ok());
  EXPECT_TRUE(agent.session.MaySend(5000));
  // More under way than the credit: no less than nothing is left.
  agent.Send(5, 5, 5000);
  EXPECT_FALSE(agent.session.MaySend(1));
}

TEST(AgentSession, AckOfWhatWasNotSentOrGoingBackIsAnError) {
  WelcomedAgent agent(SomeWelcome(10));
  agent.Send(11, 12, 10);
  agent.session.SendGap(Lost(13, 15), 0);
  ASSERT_TRUE(agent.Ack(12).ok());
  ASSERT_TRUE(agent.Ack(12).ok());  // said again
  ASSERT_TRUE(agent.Ack(15).ok());
  const absl::Status back = agent.Ack(14);
  EXPECT_TRUE(absl::IsDataLoss(back)) << back;
  EXPECT_EQ(agent.session.durable(), 15u);

  WelcomedAgent other;
  other.Send(1, 2, 10);
  const absl::Status beyond = other.Ack(3);
  EXPECT_TRUE(absl::IsDataLoss(beyond)) << beyond;
  EXPECT_EQ(other.session.durable(), 0u);
  EXPECT_FALSE(other.session.MaySend(1));
  // Each later call says so again.
  EXPECT_EQ(other.Ack(2), beyond);
  EXPECT_EQ(other.session.Tick(SomeClock(), 1), beyond);
}

TEST(AgentSession, RefusalComesThroughInTheCollectorsWords) {
  v1::Error error;
  error.set_code(v1::Error::CODE_NOT_PERMITTED);
  error.set_reason("this certificate is\nanother agent's");
  for (const bool welcomed : {false, true}) {
    AgentSession agent = Unanswered();
    if (welcomed) {
      ASSERT_TRUE(AnswerWith(agent, SomeWelcome()).ok());
    }
    agent.output().clear();
    const absl::Status status = agent.Receive(FrameOf(FrameType::kError, error), 0);
    EXPECT_TRUE(absl::IsUnavailable(status));
    EXPECT_EQ(status.message(), "the collector says: this certificate is?another agent's");
    ASSERT_TRUE(agent.refusal().has_value());
    EXPECT_EQ(agent.refusal()->code(), v1::Error::CODE_NOT_PERMITTED);
    EXPECT_TRUE(agent.output().empty());
  }
  error.clear_reason();
  AgentSession agent = Unanswered();
  EXPECT_THAT(agent.Receive(FrameOf(FrameType::kError, error), 0).ToString(),
              HasSubstr("no reason was given (code 3)"));
}

TEST(AgentSession, FramesThatMayNotComeEndIt) {
  const Bytes welcome = FrameOf(FrameType::kWelcome, SomeWelcome());
  const Bytes ack = FrameOf(FrameType::kAck, AckOf(0));
  const Bytes ping = FrameOf(FrameType::kPing, v1::Ping());
  const auto of = [](FrameType type) { return FrameOf(type, Bytes()); };
  for (const Bytes& frame : {ack, ping, of(FrameType::kHello), of(FrameType::kChunk),
                             of(FrameType::kGap), of(FrameType::kStreamInfo)}) {
    AgentSession agent = Unanswered();
    EXPECT_TRUE(absl::IsDataLoss(agent.Receive(frame, 0))) << static_cast<int>(frame[4]);
  }
  for (const Bytes& frame : {welcome, of(FrameType::kHello), of(FrameType::kChunk),
                             of(FrameType::kGap), of(FrameType::kStreamInfo)}) {
    WelcomedAgent agent;
    EXPECT_TRUE(absl::IsDataLoss(agent.session.Receive(frame, 0))) << static_cast<int>(frame[4]);
  }
  // And those whose payload is no message.
  for (const FrameType type : {FrameType::kAck, FrameType::kPing, FrameType::kError}) {
    WelcomedAgent agent;
    EXPECT_TRUE(absl::IsDataLoss(agent.session.Receive(FrameOf(type, Bytes{0xff}), 0)));
  }
  AgentSession agent = Unanswered();
  EXPECT_TRUE(absl::IsDataLoss(agent.Receive(FrameOf(FrameType::kWelcome, Bytes{0xff}), 0)));
}

TEST(AgentSession, UnknownFramesArePassedOverUnlessTheyAreCritical) {
  WelcomedAgent agent;
  EXPECT_TRUE(agent.session.Receive(FrameOf(uint8_t{77}, uint8_t{0xfe}), 0).ok());
  const absl::Status status = agent.session.Receive(FrameOf(uint8_t{77}, kFlagCritical), 0);
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("update this one"));
  AgentSession unanswered = Unanswered();
  EXPECT_TRUE(unanswered.Receive(FrameOf(uint8_t{77}, uint8_t{0}), 0).ok());
}

TEST(AgentSession, LongFramesAreTakenOnlyOnceWelcomed) {
  const Bytes frame = FrameOf(uint8_t{77}, uint8_t{0}, Bytes(kMaxHandshakeFrameBytes + 1));
  AgentSession unanswered = Unanswered();
  EXPECT_TRUE(absl::IsDataLoss(unanswered.Receive(frame, 0)));
  WelcomedAgent agent;
  EXPECT_TRUE(agent.session.Receive(frame, 0).ok());
}

TEST(AgentSession, PingsAreAnsweredOnceForAllThatCameTogether) {
  WelcomedAgent agent;
  ASSERT_TRUE(agent.session.Tick(SomeClock(88), 1).ok());
  Bytes pings;
  for (uint64_t nonce : {5, 6, 7}) {
    v1::Ping ping;
    ping.set_nonce(nonce);
    AppendFrame(FrameType::kPing, ping, pings);
  }
  ASSERT_TRUE(agent.session.Receive(pings, 2).ok());
  const auto answer = TakeFrame(agent.session.output(), FrameType::kPing).As<v1::Ping>();
  EXPECT_TRUE(answer.is_answer());
  EXPECT_EQ(answer.nonce(), 7u);
  EXPECT_EQ(answer.clock().mono_ns(), 88);
  // An answer is not answered.
  ASSERT_TRUE(agent.session.Receive(FrameOf(FrameType::kPing, answer), 3).ok());
  EXPECT_TRUE(agent.session.output().empty());
}

TEST(AgentSession, CollectorThatDoesNotAnswerIsGivenUp) {
  AgentSession agent = Unanswered();
  EXPECT_TRUE(agent.Tick(SomeClock(), AgentSession::kWelcomeDeadline_ns - 1).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(agent.Tick(SomeClock(), AgentSession::kWelcomeDeadline_ns)));
}

TEST(AgentSession, PingsASilentCollectorAndGivesItUp) {
  WelcomedAgent agent;
  for (int s = 1; s <= 9; ++s) ASSERT_TRUE(agent.session.Tick(SomeClock(), s * kSecond).ok());
  EXPECT_TRUE(agent.session.output().empty());
  ASSERT_TRUE(agent.session.Tick(SomeClock(99), 10 * kSecond).ok());
  const auto ping = TakeFrame(agent.session.output(), FrameType::kPing).As<v1::Ping>();
  EXPECT_FALSE(ping.is_answer());
  EXPECT_EQ(ping.clock().mono_ns(), 99);
  // Sending does not make up for the collector's silence; one ping in ten seconds is enough.
  for (int s = 11; s <= 19; ++s) {
    agent.session.SendGap(Lost(agent.session.next_to_send(), agent.session.next_to_send()),
                          s * kSecond);
    agent.session.output().clear();
    ASSERT_TRUE(agent.session.Tick(SomeClock(), s * kSecond).ok());
    EXPECT_TRUE(agent.session.output().empty()) << s;
  }
  ASSERT_TRUE(agent.session.Tick(SomeClock(), 20 * kSecond).ok());
  EXPECT_NE(TakeFrame(agent.session.output(), FrameType::kPing).As<v1::Ping>().nonce(),
            ping.nonce());
  ASSERT_TRUE(agent.session.Tick(SomeClock(), 30 * kSecond - 1).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(agent.session.Tick(SomeClock(), 30 * kSecond)));
}

// It talks, and stores nothing.
TEST(AgentSession, GivesUpACollectorThatAcknowledgesNothing) {
  WelcomedAgent agent;
  const auto hear = [&](int64_t s) {
    return agent.session.Receive(FrameOf(FrameType::kAck, AckOf(agent.session.durable())),
                                 s * kSecond);
  };
  ASSERT_TRUE(hear(50).ok());  // nothing was sent so far
  ASSERT_TRUE(agent.session.Tick(SomeClock(), 50 * kSecond).ok());
  agent.session.SendChunk({.first_sequence = 1, .last_sequence = 2}, Bytes(10), 50 * kSecond);
  agent.session.SendChunk({.first_sequence = 3, .last_sequence = 4}, Bytes(10), 60 * kSecond);
  const Bytes ack = FrameOf(FrameType::kAck, AckOf(2));
  ASSERT_TRUE(agent.session.Receive(ack, 70 * kSecond).ok());
  ASSERT_TRUE(hear(99).ok());
  ASSERT_TRUE(agent.session.Tick(SomeClock(), 99 * kSecond).ok());
  EXPECT_FALSE(agent.session.acknowledges_nothing());
  ASSERT_TRUE(hear(100).ok());
  const absl::Status status = agent.session.Tick(SomeClock(), 100 * kSecond);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(agent.session.acknowledges_nothing());
}

// Half a frame is no sign of life; a whole one is.
TEST(AgentSession, WholeFramesAreSignsOfLife) {
  WelcomedAgent agent;
  const Bytes ack = FrameOf(FrameType::kAck, AckOf(0));
  ASSERT_TRUE(agent.session.Receive(ack, 20 * kSecond).ok());
  ASSERT_TRUE(agent.session.Tick(SomeClock(), 49 * kSecond).ok());
  ASSERT_TRUE(agent.session.Receive(std::span(ack).first(5), 49 * kSecond).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(agent.session.Tick(SomeClock(), 50 * kSecond)));
}

// An agent with nothing to send keeps the connection alive though the collector talks.
TEST(AgentSession, PingsWhenItHasNothingToSend) {
  WelcomedAgent agent;
  for (int s = 1; s <= 9; ++s) {
    ASSERT_TRUE(agent.session.Receive(FrameOf(FrameType::kAck, AckOf(0)), s * kSecond).ok());
    ASSERT_TRUE(agent.session.Tick(SomeClock(), s * kSecond).ok());
  }
  EXPECT_TRUE(agent.session.output().empty());
  ASSERT_TRUE(agent.session.Tick(SomeClock(), 10 * kSecond).ok());
  TakeFrame(agent.session.output(), FrameType::kPing);
}

TEST(AgentSession, MisuseIsABug) {
  WelcomedAgent agent;
  EXPECT_BUG(agent.Send(2, 3, 10), "not the next chunk");
  EXPECT_BUG(agent.Send(1, 0, 10), "a chunk without records");
  EXPECT_BUG(agent.Send(1, 2, kMaxFrameBytes + 1), "larger than a frame");
  EXPECT_BUG(agent.session.SendGap(Lost(2, 3), 0), "not the next gap");
  EXPECT_BUG(agent.session.SendGap(Lost(1, kMostSequence), 0), "a gap of nothing");
  EXPECT_BUG(Unanswered({.stream_id = kSomeStream, .first_sequence = 0}), "records 0");
}

}  // namespace
}  // namespace vcpulse::stream

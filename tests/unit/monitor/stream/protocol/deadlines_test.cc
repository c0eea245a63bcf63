#include "tests/unit/monitor/stream/protocol/fixture.h"

namespace vcpulse::stream {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const Bytes kLongFrame = FrameOf(static_cast<uint8_t>(77), 0, Bytes(200'000));

absl::Status Part(NotingCollector& collector, size_t from, size_t bytes, int64_t now_ns) {
  return collector.Receive(std::span(kLongFrame).subspan(from, bytes), now_ns);
}

void ExpectTimeout(NotingCollector& collector, int64_t now_ns, const std::string& words) {
  const absl::Status status = collector.session.Tick(SomeClock(), now_ns);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  const auto error = TakeFrame(collector.session.output(), FrameType::kError).As<v1::Error>();
  EXPECT_EQ(error.code(), v1::Error::CODE_TIMEOUT);
}

bool TickIsFine(NotingCollector& collector, int64_t now_ns) {
  return collector.session.Tick(SomeClock(), now_ns).ok();
}

// Slowloris: a Hello that never ends, however diligently its bytes come.
TEST(CollectorDeadlines, HelloMustCome) {
  NotingCollector silent({}, 100 * kSecond);
  EXPECT_TRUE(TickIsFine(silent, 105 * kSecond - 1));
  ExpectTimeout(silent, 105 * kSecond, "no Hello came within 5 s");

  NotingCollector slow;
  const Bytes hello = FrameOf(FrameType::kHello, SomeHello());
  for (int64_t i = 0; i < 49; ++i) {
    ASSERT_TRUE(
        slow.Receive(std::span(hello).subspan(static_cast<size_t>(i), 1), i * kSecond / 10).ok());
    ASSERT_TRUE(TickIsFine(slow, i * kSecond / 10));
  }
  ExpectTimeout(slow, 5 * kSecond, "no Hello");
}

TEST(CollectorDeadlines, FrameMustEnd) {
  NotingCollector collector;
  collector.BeWelcomed();
  // Fast enough, but longer than 30 s.
  for (int64_t s = 2; s < 32; ++s) {
    ASSERT_TRUE(Part(collector, static_cast<size_t>(s - 2) * 2000, 2000, s * kSecond).ok());
    ASSERT_TRUE(TickIsFine(collector, s * kSecond)) << s;
  }
  EXPECT_TRUE(TickIsFine(collector, 32 * kSecond - 1));
  collector.session.output().clear();  // it was pinged on the way
  ExpectTimeout(collector, 32 * kSecond, "has not ended within 30 s");
}

TEST(CollectorDeadlines, FrameMustComeAtARateFromTheFifthSecondOn) {
  NotingCollector collector;
  collector.BeWelcomed();
  ASSERT_TRUE(Part(collector, 0, 1, 2 * kSecond).ok());
  EXPECT_TRUE(TickIsFine(collector, 7 * kSecond - 1));
  ExpectTimeout(collector, 7 * kSecond, "less than 1024 bytes per second");

  NotingCollector just;
  just.BeWelcomed();
  ASSERT_TRUE(Part(just, 0, 5 * 1024, 2 * kSecond).ok());
  EXPECT_TRUE(TickIsFine(just, 7 * kSecond));
  ExpectTimeout(just, 8 * kSecond, "less than 1024 bytes per second");
}

// The time of a frame runs from its own first byte.
TEST(CollectorDeadlines, EachFrameHasItsOwnTime) {
  NotingCollector collector;
  collector.BeWelcomed();
  Bytes whole_and_more = kLongFrame;
  whole_and_more.push_back(kFrameMagic[0]);
  ASSERT_TRUE(collector.Receive(std::span(whole_and_more).first(150'000), 0).ok());
  ASSERT_TRUE(collector.Receive(std::span(whole_and_more).subspan(150'000), 28 * kSecond).ok());
  EXPECT_TRUE(TickIsFine(collector, 33 * kSecond - 1));
  ExpectTimeout(collector, 33 * kSecond, "less than");

  NotingCollector done;
  done.BeWelcomed();
  ASSERT_TRUE(done.Receive(std::span(kLongFrame).first(10), 0).ok());
  ASSERT_TRUE(done.Receive(std::span(kLongFrame).subspan(10), kSecond).ok());
  EXPECT_TRUE(TickIsFine(done, 40 * kSecond));
}

TEST(CollectorDeadlines, SilenceIsPingedAndEnds) {
  NotingCollector collector;
  collector.BeWelcomed();
  EXPECT_TRUE(TickIsFine(collector, 20 * kSecond - 1));
  EXPECT_THAT(collector.session.output(), IsEmpty());
  ASSERT_TRUE(collector.session.Tick(SomeClock(66), 20 * kSecond).ok());
  const auto ping = TakeFrame(collector.session.output(), FrameType::kPing).As<v1::Ping>();
  EXPECT_FALSE(ping.is_answer());
  EXPECT_EQ(ping.clock().mono_ns(), 66);
  EXPECT_TRUE(TickIsFine(collector, 39 * kSecond));
  EXPECT_THAT(collector.session.output(), IsEmpty());
  EXPECT_TRUE(TickIsFine(collector, 40 * kSecond));
  EXPECT_NE(TakeFrame(collector.session.output(), FrameType::kPing).As<v1::Ping>().nonce(),
            ping.nonce());
  EXPECT_TRUE(TickIsFine(collector, 60 * kSecond - 1));
  collector.session.output().clear();
  ExpectTimeout(collector, 60 * kSecond, "nothing came for 60 s");
}

TEST(CollectorDeadlines, AnswersKeepItOpen) {
  NotingCollector collector;
  collector.BeWelcomed();
  for (int64_t s = 0; s <= 300; s += 10) {
    v1::Ping answer;
    answer.set_is_answer(true);
    ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kPing, answer), s * kSecond).ok());
    ASSERT_TRUE(TickIsFine(collector, s * kSecond));
  }
  EXPECT_THAT(collector.session.output(), IsEmpty());
}

// No ping while the Hello waits for its answer; but for ever it does not wait.
TEST(CollectorDeadlines, UnansweredHello) {
  NotingCollector collector;
  collector.welcomes = false;
  ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kHello, SomeHello()), kSecond).ok());
  EXPECT_TRUE(TickIsFine(collector, 61 * kSecond - 1));
  EXPECT_THAT(collector.session.output(), IsEmpty());
  ExpectTimeout(collector, 61 * kSecond, "nothing came");
}

TEST(CollectorDeadlines, TimeInWhichTheOwnerDidNotReadIsExcused) {
  NotingCollector collector;
  collector.BeWelcomed();
  ASSERT_TRUE(Part(collector, 0, 1, 0).ok());
  collector.session.Excuse(100 * kSecond);
  EXPECT_TRUE(TickIsFine(collector, 105 * kSecond - 1));
  ExpectTimeout(collector, 105 * kSecond, "less than");
  NotingCollector new_one;
  new_one.session.Excuse(kSecond);
  EXPECT_TRUE(TickIsFine(new_one, 6 * kSecond - 1));
  ExpectTimeout(new_one, 6 * kSecond, "no Hello");
}

}  // namespace
}  // namespace vcpulse::stream

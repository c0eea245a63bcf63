#include "monitor/stream/nats/publish_ledger.h"

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr timeline::StreamId kStream = {1};
constexpr timeline::StreamId kOther = {2};
constexpr int64_t kMargin_ns = 100;

class PublishLedgerTest : public ::testing::Test {
 protected:
  // Publishes records first to last as one chunk, which must be what is next.
  PublishLedger::Token Publish(uint64_t first, uint64_t last, bool is_loss = false) {
    EXPECT_EQ(ledger_.NextToPublish(kStream, 1), first);
    items_[first] = {.first = first, .last = last, .bytes = 10, .is_loss = is_loss};
    return ledger_.Published(kStream, items_[first], now_ns_);
  }

  // The broker answers; each message that it does not know comes behind all others.
  bool Acknowledge(PublishLedger::Token token, bool was_known, int64_t now_ns) {
    return ledger_.Acknowledged(token, {.sequence = ++sequence_, .was_known = was_known}, now_ns);
  }

  // What is released then, with the proof that it takes, which the broker knows.
  std::vector<std::pair<timeline::StreamId, uint64_t>> Released(int64_t now_ns) {
    auto released = ledger_.TakeReleased(now_ns);
    const auto acknowledged = [this] {
      return ledger_.acknowledged_chunks() + ledger_.acknowledged_lost_records();
    };
    const uint64_t before = acknowledged();
    const uint64_t next = ledger_.NextToPublish(kStream, 1);
    if (acknowledged() == before) return released;
    const auto proof = ledger_.Published(kStream, items_.at(next), now_ns);
    EXPECT_FALSE(ledger_.Acknowledged(proof, {.sequence = next, .was_known = true}, now_ns));
    return ledger_.TakeReleased(now_ns);
  }

  std::map<uint64_t, PublishLedger::Item> items_;
  uint64_t sequence_ = 0;
  int64_t now_ns_ = 1'000;
  PublishLedger ledger_{{.margin_ns = kMargin_ns,
                         .ack_deadline_ns = 50,
                         .most_under_way = 3,
                         .most_bytes_under_way = 35}};
};

TEST_F(PublishLedgerTest, WhatIsAcknowledgedIsReleasedAfterTheMargin) {
  const auto first = Publish(1, 4);
  const auto second = Publish(5, 9);
  EXPECT_TRUE(Acknowledge(first, false, 1'000));
  EXPECT_TRUE(Acknowledge(second, false, 1'010));
  EXPECT_THAT(ledger_.TakeReleased(1'099), IsEmpty());
  EXPECT_EQ(ledger_.acknowledged_chunks(), 2u);
  EXPECT_THAT(Released(1'100), ElementsAre(Pair(kStream, 4u)));
  EXPECT_THAT(ledger_.TakeReleased(1'109), IsEmpty());
  EXPECT_THAT(Released(1'119), IsEmpty());  // proofs have a period
  EXPECT_THAT(Released(1'120), ElementsAre(Pair(kStream, 9u)));
  EXPECT_EQ(ledger_.acknowledged_chunks(), 0u);
  EXPECT_EQ(ledger_.NextToPublish(kStream, 1), 10u);
}

// A power cut that nobody noticed: the proof before the release finds it.
TEST_F(PublishLedgerTest, NothingIsReleasedWithoutAProofAfterTheMargin) {
  EXPECT_TRUE(Acknowledge(Publish(1, 4), false, 1'000));
  EXPECT_TRUE(Acknowledge(Publish(5, 9), false, 1'000));
  EXPECT_THAT(ledger_.TakeReleased(1'100), IsEmpty());
  now_ns_ = 1'100;
  const auto proof = Publish(5, 9);
  EXPECT_THAT(ledger_.TakeReleased(1'100), IsEmpty());
  EXPECT_FALSE(Acknowledge(proof, false, 1'101));  // it has lost it
  EXPECT_TRUE(Acknowledge(Publish(1, 4), true, 1'102));
  EXPECT_EQ(ledger_.NextToPublish(kStream, 1), 10u);
  EXPECT_THAT(Released(1'202), ElementsAre(Pair(kStream, 9u)));  // with another proof
}

TEST_F(PublishLedgerTest, WithoutAMarginThereIsNoProof) {
  PublishLedger none({.margin_ns = 0});
  EXPECT_EQ(none.NextToPublish(kStream, 1), 1u);
  const auto token = none.Published(kStream, {.first = 1, .last = 4}, 1'000);
  EXPECT_TRUE(none.Acknowledged(token, {.sequence = 1}, 1'000));
  EXPECT_THAT(none.TakeReleased(1'000), ElementsAre(Pair(kStream, 4u)));
}

TEST_F(PublishLedgerTest, WhatIsNotAcknowledgedKeepsWhatComesBehindIt) {
  const auto first = Publish(1, 4);
  const auto second = Publish(5, 9);
  EXPECT_TRUE(Acknowledge(second, false, 1'000));
  EXPECT_THAT(ledger_.TakeReleased(5'000), IsEmpty());
  EXPECT_TRUE(Acknowledge(first, false, 5'000));
  EXPECT_THAT(Released(5'100), ElementsAre(Pair(kStream, 9u)));
}

TEST_F(PublishLedgerTest, EarlyIsBeforeTheMargin) {
  EXPECT_TRUE(Acknowledge(Publish(1, 4), false, 1'000));
  Publish(5, 9);
  EXPECT_THAT(ledger_.TakeReleased(1'000, true), ElementsAre(Pair(kStream, 4u)));
}

TEST_F(PublishLedgerTest, AnAnswerToNothingIsNone) {
  const auto token = Publish(1, 4);
  EXPECT_FALSE(Acknowledge(token + 1, false, 1'000));
  EXPECT_TRUE(Acknowledge(token, false, 1'000));
  EXPECT_FALSE(Acknowledge(token, false, 1'000));
}

TEST_F(PublishLedgerTest, WhatIsRefusedGoesOutAgain) {
  const auto first = Publish(1, 4);
  Publish(5, 9);
  ledger_.Refused(first);
  EXPECT_EQ(ledger_.under_way(), 1u);
  EXPECT_EQ(ledger_.NextToPublish(kStream, 1), 1u);
  EXPECT_TRUE(Acknowledge(Publish(1, 4), false, 1'000));
  EXPECT_EQ(ledger_.NextToPublish(kStream, 1), 10u);
}

TEST_F(PublishLedgerTest, MessagesAndBytesUnderWayHaveABound) {
  EXPECT_TRUE(ledger_.MayPublish(1'000));  // one alone always may
  Publish(1, 4);
  EXPECT_TRUE(ledger_.MayPublish(25));
  EXPECT_FALSE(ledger_.MayPublish(26));
  Publish(5, 9);
  Publish(10, 11);
  EXPECT_FALSE(ledger_.MayPublish(1));
}

TEST_F(PublishLedgerTest, TheOldestTellsWhetherAcknowledgementsAreOverdue) {
  EXPECT_FALSE(ledger_.IsOverdue(9'999));
  Publish(1, 4);
  EXPECT_FALSE(ledger_.IsOverdue(1'050));
  EXPECT_TRUE(ledger_.IsOverdue(1'051));
}

TEST_F(PublishLedgerTest, AfterAnInterruptionTheNewestAcknowledgedIsTheProof) {
  EXPECT_TRUE(Acknowledge(Publish(1, 4), false, 1'000));
  EXPECT_TRUE(Acknowledge(Publish(5, 9), false, 1'000));
  const auto lost = Publish(10, 11);
  ledger_.Interrupted();
  EXPECT_EQ(ledger_.under_way(), 0u);
  EXPECT_FALSE(Acknowledge(lost, false, 1'000));  // of the old connection
  // Until it is proven nothing leaves the spool, however long that takes.
  EXPECT_THAT(ledger_.TakeReleased(9'000), IsEmpty());
  const auto proof = Publish(5, 9);
  EXPECT_THAT(ledger_.TakeReleased(9'000), IsEmpty());
  EXPECT_EQ(ledger_.NextToPublish(kStream, 1), 10u);
  EXPECT_FALSE(Acknowledge(proof, true, 9'000));  // nothing new
  EXPECT_THAT(Released(9'000), ElementsAre(Pair(kStream, 9u)));
}

// A chunk that was published again may come behind later ones: the broker took it last.
TEST_F(PublishLedgerTest, TheProofIsWhatTheBrokerTookLast) {
  const auto first = Publish(1, 4);
  const auto second = Publish(5, 9);
  EXPECT_TRUE(Acknowledge(second, false, 1'000));
  EXPECT_TRUE(Acknowledge(first, false, 1'000));
  ledger_.Interrupted();
  EXPECT_EQ(ledger_.NextToPublish(kStream, 1), 1u);
}

TEST_F(PublishLedgerTest, ABrokerThatHasLostItsEndGetsAllOfTheMarginAgain) {
  EXPECT_TRUE(Acknowledge(Publish(1, 4), false, 1'000));
  EXPECT_TRUE(Acknowledge(Publish(5, 9), false, 1'000));
  EXPECT_TRUE(Acknowledge(Publish(10, 11), false, 1'000));
  ledger_.Interrupted();
  const auto proof = Publish(10, 11);
  EXPECT_FALSE(Acknowledge(proof, false, 2'000));  // it did not know it
  EXPECT_EQ(ledger_.acknowledged_chunks(), 1u);
  EXPECT_TRUE(Acknowledge(Publish(1, 4), true, 2'010));
  EXPECT_TRUE(Acknowledge(Publish(5, 9), false, 2'010));
  EXPECT_THAT(ledger_.TakeReleased(2'100), IsEmpty());  // the margin begins anew
  EXPECT_THAT(Released(2'110), ElementsAre(Pair(kStream, 11u)));
}

// The broker may have taken the proof as something new, and its answer may be lost: that it knows
// the proof the next time tells nothing.
TEST_F(PublishLedgerTest, AfterAProofWithoutAnAnswerAllGoesOutAgain) {
  EXPECT_TRUE(Acknowledge(Publish(1, 4), false, 1'000));
  EXPECT_TRUE(Acknowledge(Publish(5, 9), false, 1'000));
  ledger_.Interrupted();
  Publish(5, 9);
  ledger_.Interrupted();
  EXPECT_EQ(ledger_.acknowledged_chunks(), 0u);
  EXPECT_TRUE(Acknowledge(Publish(1, 4), false, 2'000));
  EXPECT_TRUE(Acknowledge(Publish(5, 9), true, 2'000));
  EXPECT_THAT(Released(2'100), ElementsAre(Pair(kStream, 9u)));
}

// A spool that is nearly full lets go of what was acknowledged, also while nobody can prove it.
TEST_F(PublishLedgerTest, EarlyIsBeforeTheProofToo) {
  EXPECT_TRUE(Acknowledge(Publish(1, 4), false, 1'000));
  ledger_.Interrupted();
  EXPECT_THAT(ledger_.TakeReleased(1'000, true), ElementsAre(Pair(kStream, 4u)));
}

// The stream's servers may lose power while the agent's own server stands: no interruption tells.
TEST_F(PublishLedgerTest, ASequenceThatGoesBackMeansThatTheEndIsLost) {
  EXPECT_TRUE(Acknowledge(Publish(1, 4), false, 1'000));
  EXPECT_TRUE(Acknowledge(Publish(5, 9), false, 1'000));
  sequence_ = 1;  // it has lost the second
  EXPECT_TRUE(Acknowledge(Publish(10, 11), false, 1'000));
  EXPECT_EQ(ledger_.acknowledged_chunks(), 1u);
  EXPECT_EQ(ledger_.NextToPublish(kStream, 1), 1u);
  EXPECT_TRUE(Acknowledge(Publish(1, 4), true, 1'010));
  EXPECT_TRUE(Acknowledge(Publish(5, 9), false, 1'010));
  EXPECT_EQ(ledger_.acknowledged_chunks(), 3u);
}

TEST_F(PublishLedgerTest, AProofThatWasNotPublishedYetIsTakenUpAgain) {
  EXPECT_TRUE(Acknowledge(Publish(1, 4), false, 1'000));
  ledger_.Interrupted();
  EXPECT_EQ(ledger_.NextToPublish(kStream, 1), 1u);
  ledger_.Interrupted();
  EXPECT_EQ(ledger_.acknowledged_chunks(), 1u);
  EXPECT_EQ(ledger_.NextToPublish(kStream, 1), 1u);
}

TEST_F(PublishLedgerTest, WithNothingAcknowledgedThereIsNothingToProve) {
  Publish(1, 4);
  ledger_.Interrupted();
  const auto again = Publish(1, 4);
  EXPECT_TRUE(Acknowledge(again, true, 1'000));  // the broker had it after all
  EXPECT_THAT(Released(1'100), ElementsAre(Pair(kStream, 4u)));
}

TEST_F(PublishLedgerTest, ALossTakesThePlaceOfTheChunksThatTheSpoolDropped) {
  Publish(1, 4);
  Publish(5, 9);
  Publish(10, 11);
  ledger_.Interrupted();
  EXPECT_TRUE(Acknowledge(Publish(1, 9, true), false, 1'000));
  EXPECT_EQ(ledger_.acknowledged_lost_records(), 9u);
  EXPECT_EQ(ledger_.acknowledged_chunks(), 0u);
  EXPECT_TRUE(Acknowledge(Publish(10, 11), false, 1'000));
  EXPECT_THAT(Released(1'100), ElementsAre(Pair(kStream, 11u)));
  EXPECT_EQ(ledger_.acknowledged_lost_records(), 0u);
}

TEST_F(PublishLedgerTest, StreamsAreEachTheirOwn) {
  Publish(1, 4);
  EXPECT_EQ(ledger_.NextToPublish(kOther, 17), 17u);
  const auto token = ledger_.Published(kOther, {.first = 17, .last = 20}, now_ns_);
  EXPECT_TRUE(Acknowledge(token, false, 1'000));
  EXPECT_THAT(ledger_.TakeReleased(1'000, true), ElementsAre(Pair(kOther, 20u)));
  ledger_.Forget(kOther);
  EXPECT_EQ(ledger_.NextToPublish(kOther, 3), 3u);
}

// A broker that now and then loses its newest messages, acknowledgements or the connection, against
// a model of what it has: whatever was released stays there for good, all comes there in the end.
TEST_F(PublishLedgerTest, NothingThatWasReleasedIsMissingAtTheBroker) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&random](uint32_t below) { return random() % below; };
    constexpr uint64_t kChunks = 60;
    PublishLedger ledger({.margin_ns = 40, .ack_deadline_ns = 15, .most_under_way = 8});
    std::vector<uint64_t> stored;  // at the broker, in order, with when
    std::vector<int64_t> stored_ns;
    std::vector<std::pair<PublishLedger::Token, BrokerAck>> answers;
    uint64_t released = 0;
    int64_t now_ns = 0;
    for (int step = 0; step < 4'000 && released < kChunks; ++step) {
      ++now_ns;
      const bool calm = step > 2'000;
      // Power goes: what is younger than 30 is gone, and so is the connection.
      if (!calm && draw(60) == 0) {
        while (!stored.empty() && now_ns - stored_ns.back() < 30) {
          stored.pop_back();
          stored_ns.pop_back();
        }
        answers.clear();
        if (draw(2) == 0) ledger.Interrupted();  // else its own server stands
      }
      const uint64_t next = ledger.NextToPublish(kStream, 1);
      if (next <= kChunks && ledger.MayPublish(1)) {
        const auto token =
            ledger.Published(kStream, {.first = next, .last = next, .bytes = 1}, now_ns);
        const bool arrives = calm || draw(10) != 0;
        auto at = std::ranges::find(stored, next);
        const bool known = at != stored.end();
        const BrokerAck ack{.sequence = static_cast<uint64_t>(at - stored.begin()) + 1,
                            .was_known = known};
        if (arrives && !known) {
          stored.push_back(next);
          stored_ns.push_back(now_ns);
        }
        if (arrives && (calm || draw(10) != 0)) answers.emplace_back(token, ack);
      }
      if (!answers.empty() && draw(2) == 0) {
        const size_t which = draw(static_cast<uint32_t>(answers.size()));
        ledger.Acknowledged(answers[which].first, answers[which].second, now_ns);
        answers.erase(answers.begin() + static_cast<ptrdiff_t>(which));
      }
      if (ledger.IsOverdue(now_ns)) {
        ledger.Interrupted();
        answers.clear();
      }
      for (const auto& [stream, last] : ledger.TakeReleased(now_ns)) released = last;
      for (uint64_t chunk = 1; chunk <= released; ++chunk) {
        ASSERT_THAT(stored, ::testing::Contains(chunk)) << "seed " << seed << " step " << step;
      }
    }
    EXPECT_EQ(released, kChunks) << "seed " << seed;
  }
}

}  // namespace
}  // namespace vcpulse::stream

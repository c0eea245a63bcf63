#include <limits>

#include "monitor/timeline/chunk_encoder.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kLastNumber = std::numeric_limits<uint64_t>::max();

Bytes Encoded(const ChunkHeader& header, const v1::ChunkPayload& payload) {
  ChunkEncoder encoder;
  const auto chunk = encoder.Encode(header, payload);
  EXPECT_TRUE(chunk.ok());
  return chunk.ok() ? Bytes(chunk->begin(), chunk->end()) : Bytes();
}

// A chunk without records that says that these are lost.
Bytes LostChunk(uint64_t first, uint64_t last, uint8_t stream = 1) {
  v1::ChunkPayload payload;
  payload.mutable_lost()->set_first_sequence(first);
  payload.mutable_lost()->set_last_sequence(last);
  payload.mutable_lost()->set_reason(v1::LostRecords::REASON_SPOOL_FULL);
  return Encoded({.stream_id = {stream}, .first_sequence = first, .last_sequence = first - 1},
                 payload);
}

Bytes Records(uint64_t first, uint64_t last, uint8_t stream = 1) {
  v1::ChunkPayload payload;
  for (uint64_t s = first; s <= last; ++s) {
    v1::TimelineRecord* record = payload.add_records();
    record->set_sequence(s);
    record->mutable_marker()->set_name("a marker of some length");
  }
  return Encoded({.stream_id = {stream}, .first_sequence = first, .last_sequence = last}, payload);
}

ToldLoss Told(uint64_t first, uint64_t last) {
  return {first, last, v1::LostRecords::REASON_SPOOL_FULL};
}

TEST(ToldLosses, AreCountedOnceWhereverTheyStand) {
  // In the middle, at the beginning, at the end, alone.
  const Bytes before = Records(1, 4);
  const Bytes lost = LostChunk(5, 14);
  const Bytes after = Records(15, 20);
  struct Case {
    std::vector<Bytes> chunks;
    uint64_t records;
    uint64_t before_first;
    bool lost_end;
  };
  const std::vector<Case> cases = {{{before, lost, after}, 10, 0, false},
                                   {{lost, after}, 6, 4, false},
                                   {{before, lost}, 4, 0, true},
                                   {{lost}, 0, 4, true}};
  for (const auto& [chunks, records, before_first, lost_end] : cases) {
    const Seen seen = ReadBytes(Concatenate(chunks));
    ASSERT_TRUE(seen.report.ok()) << seen.report.status();
    EXPECT_EQ(seen.report->lost_records, 10 + before_first);
    EXPECT_EQ(seen.report->lost_before_first, before_first);
    EXPECT_EQ(seen.report->lost_end, lost_end);
    EXPECT_THAT(seen.report->told_losses, ElementsAre(Told(5, 14)));
    EXPECT_EQ(seen.report->records, records);
    EXPECT_THAT(seen.report->damages, IsEmpty());
  }
}

// No record has the number 0, so that is damage: of this chunk alone, and nothing is before it.
TEST(ToldLosses, AChunkThatBeginsWithZeroIsDamaged) {
  const Seen seen = ReadBytes(Concatenate({Records(0, 4), Records(5, 6)}));
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  ASSERT_THAT(seen.report->damages, testing::SizeIs(1));
  EXPECT_THAT(seen.report->damages[0].reason, testing::Not(testing::HasSubstr("repeats")));
  EXPECT_EQ(seen.report->lost_records, 5u);
  EXPECT_EQ(seen.report->lost_before_first, 0u);
}

TEST(ToldLosses, HolesBesideThemCountToo) {
  const Seen seen = ReadBytes(Concatenate({Records(1, 4), LostChunk(7, 9), Records(12, 12)}));
  ASSERT_TRUE(seen.report.ok());
  EXPECT_EQ(seen.report->lost_records, 7u);
  EXPECT_THAT(seen.report->told_losses, ElementsAre(Told(7, 9)));
}

TEST(ToldLosses, WhatWasReadOrToldBeforeIsNotLostAgain) {
  const Seen seen = ReadBytes(Concatenate({Records(1, 4), LostChunk(2, 3), LostChunk(5, 8),
                                           LostChunk(5, 8), LostChunk(3, 10), Records(11, 11)}));
  ASSERT_TRUE(seen.report.ok());
  EXPECT_EQ(seen.report->lost_records, 6u);
  EXPECT_THAT(seen.report->told_losses, ElementsAre(Told(5, 8), Told(9, 10)));
  EXPECT_EQ(seen.report->records, 5u);
}

TEST(ToldLosses, EachStreamHasItsOwn) {
  const Seen seen = ReadBytes(
      Concatenate({Records(1, 4), LostChunk(5, 6), LostChunk(1, 9, 2), Records(10, 11, 2)}));
  ASSERT_TRUE(seen.report.ok());
  EXPECT_EQ(seen.report->lost_records, 11u);
  EXPECT_THAT(seen.report->told_losses, ElementsAre(Told(5, 6), Told(1, 9)));
}

TEST(ToldLosses, NonsenseIsPassedOver) {
  for (const auto& [first, last] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, 9}, {9, 8}, {5, kLastNumber}, {0, kLastNumber}, {1, 0}}) {
    const Seen seen =
        ReadBytes(Concatenate({Records(1, 4), LostChunk(first, last), Records(5, 6)}));
    ASSERT_TRUE(seen.report.ok());
    EXPECT_EQ(seen.report->records, 6u);
    EXPECT_THAT(seen.report->told_losses, IsEmpty());
  }
  // A chunk with records says nothing of others.
  v1::ChunkPayload payload;
  payload.add_records()->set_sequence(5);
  payload.mutable_records(0)->mutable_marker()->set_name("m");
  payload.mutable_lost()->set_first_sequence(6);
  payload.mutable_lost()->set_last_sequence(9);
  const Bytes chunk = Encoded({.stream_id = {1}, .first_sequence = 5, .last_sequence = 5}, payload);
  const Seen seen = ReadBytes(Concatenate({Records(1, 4), chunk, Records(6, 6)}));
  ASSERT_TRUE(seen.report.ok());
  EXPECT_EQ(seen.report->records, 6u);
  EXPECT_EQ(seen.report->lost_records, 0u);
}

// A recording whose end was lost did not end in order, whatever was read last.
TEST(ToldLosses, LostEndIsNoEnd) {
  v1::ChunkPayload payload;
  payload.add_records()->set_sequence(1);
  payload.mutable_records(0)->mutable_summary();
  Bytes file = Encoded({.stream_id = {1}, .first_sequence = 1, .last_sequence = 1}, payload);
  EXPECT_TRUE(ReadBytes(file).report->ended_in_order);
  EXPECT_FALSE(ReadBytes(Concatenate({file, LostChunk(2, 3)})).report->ended_in_order);
}

}  // namespace
}  // namespace vcpulse::timeline

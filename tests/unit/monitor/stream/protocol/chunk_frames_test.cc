#include <zstd.h>

#include <functional>
#include <limits>

#include "tests/unit/monitor/stream/protocol/fixture.h"

namespace vcpulse::stream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using timeline::ChunkHeader;
using timeline::kChunkHeaderBytes;

constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();

// The chunk with another header or payload, CRCs made right.
Bytes Changed(const Bytes& chunk, const std::function<void(ChunkHeader&, Bytes&)>& change) {
  ChunkHeader header = HeaderOf(chunk);
  Bytes payload(chunk.begin() + kChunkHeaderBytes, chunk.end());
  change(header, payload);
  header.payload_crc = timeline::Crc32c(payload);
  const auto head = timeline::EncodeChunkHeader(header);
  Bytes out(head.begin(), head.end());
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

absl::Status ReceiveChunk(NotingCollector& collector, const Bytes& chunk) {
  return collector.Receive(FrameOf(FrameType::kChunk, chunk));
}

void ExpectChunkRefused(const Bytes& chunk, const std::string& words,
                        v1::Error::Code code = v1::Error::CODE_MALFORMED) {
  NotingCollector collector;
  collector.BeWelcomed();
  const absl::Status status = ReceiveChunk(collector, chunk);
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  EXPECT_THAT(collector.events, IsEmpty());
  EXPECT_EQ(TakeFrame(collector.session.output(), FrameType::kError).As<v1::Error>().code(), code);
  EXPECT_EQ(collector.session.received(), 0u);
}

TEST(ChunkFrames, GoodOnesAreHandedOverByteForByte) {
  NotingCollector collector;
  collector.BeWelcomed();
  const Bytes first = ChunkOf(1, 1);
  const Bytes second = ChunkOf(2, 9);
  ASSERT_TRUE(ReceiveChunk(collector, first).ok());
  ASSERT_TRUE(ReceiveChunk(collector, second).ok());
  Bytes both = first;
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(collector.stored, both);
  EXPECT_EQ(collector.session.received(), 9u);
  EXPECT_EQ(collector.session.duplicates(), 0u);
}

TEST(ChunkFrames, EachCorruptedByteOfAChunkIsCaught) {
  const Bytes good = ChunkOf(1, 3);
  for (size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] = static_cast<uint8_t>(bad[i] ^ 0x40);
    NotingCollector collector;
    collector.BeWelcomed();
    EXPECT_FALSE(ReceiveChunk(collector, bad).ok()) << i;
    EXPECT_THAT(collector.events, IsEmpty()) << i;
  }
}

TEST(ChunkFrames, LengthsMustFit) {
  Bytes chunk = ChunkOf(1, 3);
  chunk.push_back(0);
  ExpectChunkRefused(chunk, "a chunk frame of");
  chunk.resize(chunk.size() - 2);
  ExpectChunkRefused(chunk, "a chunk frame of");
  chunk.resize(kChunkHeaderBytes - 1);
  ExpectChunkRefused(chunk, "cut off");
  ExpectChunkRefused({}, "cut off");
}

TEST(ChunkFrames, AnotherStreamIsRefused) {
  ExpectChunkRefused(ChunkOf(1, 3, {9}), "another stream");
}

TEST(ChunkFrames, NoneWithoutRecords) {
  const Bytes chunk = ChunkOf(1, 3);
  const auto with = [&](uint64_t first, uint64_t last) {
    return Changed(chunk, [&](ChunkHeader& header, Bytes&) {
      header.first_sequence = first;
      header.last_sequence = last;
    });
  };
  ExpectChunkRefused(with(1, 0), "without records");
  ExpectChunkRefused(with(0, 2), "without records");
  ExpectChunkRefused(with(kLargest, kLargest), "without records");
}

TEST(ChunkFrames, LaterReleasesAreToldInWords) {
  const Bytes chunk = Changed(
      ChunkOf(1, 3), [](ChunkHeader& header, Bytes&) { header.required_features |= 1u << 30; });
  ExpectChunkRefused(chunk, "update vcpulse on the collector", v1::Error::CODE_VERSION);
}

// A zip bomb: 16 MiB of zeros in a few hundred bytes behind a header that says little, or nothing.
TEST(ChunkFrames, BombsAreRefusedUnopened) {
  const Bytes zeros(size_t{32} << 20);
  Bytes bomb(1u << 16);
  bomb.resize(ZSTD_compress(bomb.data(), bomb.size(), zeros.data(), zeros.size(), 19));
  ASSERT_LT(bomb.size(), 8192u);
  const auto with = [&](uint32_t content_bytes, const Bytes& payload) {
    return Changed(ChunkOf(1, 3), [&](ChunkHeader& header, Bytes& stored) {
      stored = payload;
      header.payload_bytes = static_cast<uint32_t>(payload.size());
      header.content_bytes = content_bytes;
    });
  };
  ExpectChunkRefused(with(1000, bomb), "another size");
  ExpectChunkRefused(with(32u << 20, bomb), "more than a chunk may hold");
  // A frame that does not declare its size.
  Bytes silent(1u << 16);
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  silent.resize(ZSTD_compress2(context, silent.data(), silent.size(), zeros.data(), 1000));
  ZSTD_freeCCtx(context);
  ExpectChunkRefused(with(1000, silent), "another size");
  // Two frames, of which the first one is modest.
  Bytes two(1u << 16);
  two.resize(ZSTD_compress(two.data(), two.size(), zeros.data(), 1000, 3));
  ExpectChunkRefused(with(1001, two), "another size");
  NotingCollector collector;
  collector.BeWelcomed();
  EXPECT_TRUE(ReceiveChunk(collector, with(1000, two)).ok());  // it is not opened here
  two.insert(two.end(), bomb.begin(), bomb.end());
  ExpectChunkRefused(with(1000, two), "not one zstd frame");
  ExpectChunkRefused(with(1000, Bytes(50)), "not one zstd frame");
}

TEST(ChunkFrames, PlainContentIsTaken) {
  const Bytes plain = Changed(ChunkOf(1, 3), [](ChunkHeader& header, Bytes& payload) {
    payload.assign(500, 1);
    header.required_features = 0;
    header.payload_bytes = 500;
    header.content_bytes = 500;
  });
  NotingCollector collector;
  collector.BeWelcomed();
  EXPECT_TRUE(ReceiveChunk(collector, plain).ok());
}

TEST(ChunkFrames, WhatWasReceivedBeforeIsPassedOverAndAcknowledgedAgain) {
  NotingCollector collector;
  collector.durable = 10;
  collector.BeWelcomed();
  ASSERT_TRUE(ReceiveChunk(collector, ChunkOf(11, 14)).ok());
  collector.session.Ack(12);
  collector.session.output().clear();
  collector.events.clear();
  // Known from the Welcome, received in this connection, and a gap.
  Bytes old;
  for (const Bytes& chunk : {ChunkOf(3, 10), ChunkOf(11, 14), ChunkOf(12, 13)}) {
    AppendFrame(FrameType::kChunk, chunk, old);
  }
  AppendFrame(FrameType::kGap, Lost(1, 2), old);
  ASSERT_TRUE(collector.Receive(old).ok());
  EXPECT_THAT(collector.events, IsEmpty());
  EXPECT_EQ(collector.session.duplicates(), 4u);
  EXPECT_EQ(collector.session.received(), 14u);
  // Once for all of them, and no more than what is durable.
  const auto ack = TakeFrame(collector.session.output(), FrameType::kAck).As<v1::Ack>();
  EXPECT_EQ(ack.durable_sequence(), 12u);
  ASSERT_TRUE(ReceiveChunk(collector, ChunkOf(15, 15)).ok());
  EXPECT_THAT(collector.session.output(), IsEmpty());
}

TEST(ChunkFrames, HolesAndOverlapsAreRefused) {
  const std::vector<std::pair<Bytes, std::string>> cases = {
      {FrameOf(FrameType::kChunk, ChunkOf(12, 14)), "a hole must be told"},
      {FrameOf(FrameType::kChunk, ChunkOf(10, 11)), "they overlap"},
      {FrameOf(FrameType::kChunk, ChunkOf(5, 20)), "they overlap"},
      {FrameOf(FrameType::kGap, Lost(12, 14)), "a hole must be told"},
      {FrameOf(FrameType::kGap, Lost(10, 11)), "they overlap"}};
  for (const auto& [frame, words] : cases) {
    NotingCollector collector;
    collector.durable = 10;
    collector.BeWelcomed();
    const absl::Status status = collector.Receive(frame);
    EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_THAT(std::string(status.message()), HasSubstr("record 11 is the next"));
    EXPECT_THAT(collector.events, IsEmpty());
    const auto error = TakeFrame(collector.session.output(), FrameType::kError).As<v1::Error>();
    EXPECT_EQ(error.code(), v1::Error::CODE_SEQUENCE);
  }
}

TEST(ChunkFrames, GapsFillHoles) {
  NotingCollector collector;
  collector.BeWelcomed();
  ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kGap, Lost(1, 4))).ok());
  ASSERT_TRUE(ReceiveChunk(collector, ChunkOf(5, 6)).ok());
  v1::LostRecords later = Lost(7, kLargest - 1);
  later.set_reason(static_cast<v1::LostRecords::Reason>(99));  // of a later release
  ASSERT_TRUE(collector.Receive(FrameOf(FrameType::kGap, later)).ok());
  EXPECT_THAT(collector.events, ElementsAre("gap 1-4 1", testing::StartsWith("chunk 5-6"),
                                            absl::StrCat("gap 7-", kLargest - 1, " 99")));
  EXPECT_EQ(collector.session.received(), kLargest - 1);
}

TEST(ChunkFrames, GapsOfNothingAreRefused) {
  for (const v1::LostRecords& lost : {Lost(1, 0), Lost(0, 4), Lost(0, 0), Lost(1, kLargest)}) {
    NotingCollector collector;
    collector.BeWelcomed();
    EXPECT_TRUE(absl::IsDataLoss(collector.Receive(FrameOf(FrameType::kGap, lost))))
        << lost.ShortDebugString();
    EXPECT_THAT(collector.events, IsEmpty());
  }
}

}  // namespace
}  // namespace vcpulse::stream

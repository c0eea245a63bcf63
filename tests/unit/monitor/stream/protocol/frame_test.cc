#include "monitor/stream/protocol/frame.h"

#include "tests/unit/monitor/stream/protocol/fixture.h"

namespace vcpulse::stream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Bytes kThreeBytes = {10, 20, 30};

// The bytes of the head are public: other programs speak it.
TEST(Frame, HeadIsAsDocumented) {
  const Bytes frame = FrameOf(FrameType::kChunk, kThreeBytes);
  ASSERT_EQ(frame.size(), 23u);
  EXPECT_THAT(std::vector(frame.begin(), frame.begin() + 12),
              ElementsAre(0x89, 'V', 'P', 'S', 3, 0, 0, 0, 3, 0, 0, 0));
  const auto at = [&](size_t offset) {
    return uint32_t{frame[offset]} | uint32_t{frame[offset + 1]} << 8 |
           uint32_t{frame[offset + 2]} << 16 | uint32_t{frame[offset + 3]} << 24;
  };
  EXPECT_EQ(at(12), timeline::Crc32c(kThreeBytes));
  EXPECT_EQ(at(16), timeline::Crc32c(std::span(frame).first(16)));
}

TEST(Frame, ComesBackHoweverItIsSplit) {
  Bytes stream = FrameOf(FrameType::kChunk, kThreeBytes);
  AppendFrame(FrameType::kPing, std::span<const uint8_t>(), stream);
  AppendFrame(FrameType::kChunk, Bytes(5000, 7), stream);
  for (const size_t step :
       {size_t{1}, size_t{2}, size_t{19}, size_t{21}, size_t{1000}, stream.size()}) {
    FrameReader reader(kMaxFrameBytes);
    std::vector<SeenFrame> seen;
    for (size_t at = 0; at < stream.size(); at += step) {
      reader.Feed(std::span(stream).subspan(at, std::min(step, stream.size() - at)));
      while (true) {
        const auto frame = reader.Next();
        ASSERT_TRUE(frame.ok()) << frame.status();
        if (!frame->has_value()) break;
        seen.push_back({(*frame)->type, Bytes((*frame)->payload.begin(), (*frame)->payload.end())});
      }
    }
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_EQ(seen[0].payload, kThreeBytes);
    EXPECT_TRUE(seen[1].Is(FrameType::kPing));
    EXPECT_TRUE(seen[1].payload.empty());
    EXPECT_EQ(seen[2].payload, Bytes(5000, 7));
    EXPECT_FALSE(reader.IsInsideFrame());
    EXPECT_EQ(reader.buffered(), 0u);
  }
}

TEST(Frame, TellsWhetherOneHasBegun) {
  const Bytes frame = FrameOf(FrameType::kChunk, kThreeBytes);
  FrameReader reader(kMaxFrameBytes);
  EXPECT_FALSE(reader.IsInsideFrame());
  reader.Feed(std::span(frame).first(1));
  ASSERT_TRUE(reader.Next().ok());
  EXPECT_TRUE(reader.IsInsideFrame());
  EXPECT_EQ(reader.buffered(), 1u);
  reader.Feed(std::span(frame).subspan(1));
  ASSERT_TRUE((*reader.Next()).has_value());
  EXPECT_FALSE(reader.IsInsideFrame());
}

TEST(Frame, EachCorruptedByteIsCaught) {
  const Bytes good = FrameOf(FrameType::kChunk, kThreeBytes);
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int flip : {1, 0x80, 0xff}) {
      Bytes bad = good;
      bad[i] = static_cast<uint8_t>(bad[i] ^ flip);
      FrameReader reader(kMaxFrameBytes);
      reader.Feed(bad);
      EXPECT_TRUE(absl::IsDataLoss(reader.Next().status())) << i;
      // Of no more use, whatever comes.
      reader.Feed(good);
      EXPECT_TRUE(absl::IsDataLoss(reader.Next().status())) << i;
      EXPECT_LE(reader.buffered(), bad.size());
    }
  }
}

// 4 GiB announced, and one byte beyond the cap: refused by the head alone.
TEST(Frame, LongerThanAllowedIsRefusedBeforeItsBytesCome) {
  for (const uint32_t length : {0xffffffffu, 101u}) {
    Bytes head = FrameOf(FrameType::kChunk, Bytes());
    for (size_t i = 0; i < 4; ++i) head[8 + i] = static_cast<uint8_t>(length >> (8 * i));
    const uint32_t crc = timeline::Crc32c(std::span(head).first(16));
    for (size_t i = 0; i < 4; ++i) head[16 + i] = static_cast<uint8_t>(crc >> (8 * i));
    FrameReader reader(100);
    reader.Feed(head);
    const auto frame = reader.Next();
    ASSERT_TRUE(absl::IsDataLoss(frame.status()));
    EXPECT_THAT(frame.status().ToString(),
                HasSubstr(absl::StrCat("a frame of ", length, " bytes is longer")));
  }
  FrameReader reader(100);
  reader.Feed(FrameOf(FrameType::kChunk, Bytes(100)));
  EXPECT_TRUE(reader.Next().ok());
}

// Whoever speaks something else is told with his first byte.
TEST(Frame, OtherProtocolsAreNamed) {
  const auto refusal = [](const std::string& text) {
    FrameReader reader(kMaxFrameBytes);
    reader.Feed(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
    return reader.Next().status().ToString();
  };
  EXPECT_THAT(refusal("\x16\x03\x01"), HasSubstr("looks like TLS"));
  EXPECT_THAT(refusal("GET / HTTP/1.1\r\n"), HasSubstr("looks like HTTP"));
  EXPECT_THAT(refusal("x"), HasSubstr("received data is not vcpulse protocol"));
}

TEST(Frame, MessagesBeyondTheCapOrNoneAreRefused) {
  v1::Ping ping;
  EXPECT_FALSE(ParseMessage({.payload = kThreeBytes}, &ping));
  // Field 1 again and again: a valid Ping, only long.
  Bytes varints(kMaxHandshakeFrameBytes, 1);
  for (size_t i = 0; i < varints.size(); i += 2) varints[i] = 8;
  EXPECT_TRUE(ParseMessage({.payload = varints}, &ping));
  varints.push_back(8);
  varints.push_back(1);
  EXPECT_FALSE(ParseMessage({.payload = varints}, &ping));
}

TEST(Frame, UnknownFieldsAreDroppedWhereTheyWouldTakeMemory) {
  const Bytes unknown = {0xf8, 0x07, 1, 8, 4};  // field 127 = 1, field 1 = 4
  v1::Ping ping;
  ASSERT_TRUE(ParseMessage({.payload = unknown}, &ping));
  EXPECT_EQ(ping.nonce(), 4u);
  EXPECT_EQ(ping.ByteSizeLong(), 2u);
}

}  // namespace
}  // namespace vcpulse::stream

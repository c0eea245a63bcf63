#include "monitor/timeline/chunk_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/crc.hpp>
#include <string_view>
#include <vector>

namespace vcpulse::timeline {
namespace {

using testing::HasSubstr;

ChunkHeader Sample() {
  return {.required_features = kFeatureZstd,
          .payload_bytes = 0x01020304,
          .content_bytes = 0x00040506,
          .stream_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
          .first_sequence = 0x1112131415161718,
          .last_sequence = 0x1112131415161719,
          .first_mono_ns = -2,
          .last_mono_ns = 0x2122232425262728,
          .payload_crc = 0x31323334};
}

ChunkHeader Valid() {
  ChunkHeader header = Sample();
  header.payload_bytes = 1000;
  return header;
}

// Other people's readers depend on each byte of it: the layout of docs/timeline.md, by hand.
TEST(ChunkHeader, HasTheDocumentedLayout) {
  const auto bytes = EncodeChunkHeader(Sample());
  const std::vector<uint8_t> expected = {
      0x89, 'V',  'P',  'T',  '\r', '\n', 0x1a, '\n',                                 // magic
      1,    0,    80,   0,                                                            // version
      1,    0,    0,    0,                                                            // features
      4,    3,    2,    1,    6,    5,    4,    0,                                    // lengths
      1,    2,    3,    4,    5,    6,    7,    8,    9, 10, 11, 12, 13, 14, 15, 16,  // stream
      0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,                                 // first
      0x19, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,                                 // last
      0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,                                 // from
      0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,                                 // to
      0x34, 0x33, 0x32, 0x31,                                                         // CRC
  };
  ASSERT_EQ(bytes.size(), expected.size() + 4);
  EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.end() - 4), expected);
  const uint32_t crc = Crc32c(expected);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(bytes[76 + i], (crc >> (8 * i)) & 0xff);
}

TEST(ChunkHeader, ComesBack) {
  const absl::StatusOr<ChunkHeader> header = DecodeChunkHeader(EncodeChunkHeader(Valid()));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(*header, Valid());
}

// A wrong polynomial or reflection would still round-trip; the check value of CRC-32C is public.
TEST(ChunkHeader, CrcIsCastagnoli) {
  constexpr std::string_view kCheck = "123456789";
  EXPECT_EQ(Crc32c({reinterpret_cast<const uint8_t*>(kCheck.data()), kCheck.size()}), 0xE3069283u);
  EXPECT_EQ(Crc32c({}), 0u);
}

// The processor's instruction and the table must agree at every length and alignment.
TEST(ChunkHeader, CrcIsTheSameByTable) {
  std::vector<uint8_t> bytes(100);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + 11);
  for (size_t from = 0; from < 9; ++from) {
    for (size_t length = 0; from + length <= bytes.size(); ++length) {
      boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> table;
      table.process_bytes(bytes.data() + from, length);
      ASSERT_EQ(Crc32c(std::span(bytes).subspan(from, length)), table.checksum())
          << from << "+" << length;
    }
  }
}

TEST(ChunkHeader, CutOffIsOutOfRange) {
  const auto bytes = EncodeChunkHeader(Valid());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto header = DecodeChunkHeader(std::span(bytes).first(length));
    EXPECT_TRUE(absl::IsOutOfRange(header.status())) << length << ": " << header.status();
  }
}

// No bit of a header may change unnoticed, and damage must not pass for a later version.
TEST(ChunkHeader, EveryFlippedBitIsDamage) {
  const auto good = EncodeChunkHeader(Valid());
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    auto bytes = good;
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    const auto header = DecodeChunkHeader(bytes);
    EXPECT_TRUE(absl::IsDataLoss(header.status()) || absl::IsOutOfRange(header.status()))
        << "bit " << bit << ": " << header.status();
  }
}

// What a later release means is refused in words, not called damage.
TEST(ChunkHeader, LaterVersionIsNamed) {
  ChunkHeader header = Valid();
  header.version = 2;
  const absl::Status status = DecodeChunkHeader(EncodeChunkHeader(header)).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 2"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("later release"));
}

TEST(ChunkHeader, LaterVersionMayBeLonger) {
  const auto version_1 = EncodeChunkHeader(Valid());
  std::vector<uint8_t> bytes(version_1.begin(), version_1.end() - 4);
  bytes.resize(120);
  bytes[8] = 2;
  bytes[10] = 124;
  const uint32_t crc = Crc32c(bytes);
  for (size_t i = 0; i < 4; ++i) bytes.push_back(static_cast<uint8_t>(crc >> (8 * i)));
  EXPECT_TRUE(absl::IsUnimplemented(DecodeChunkHeader(bytes).status()));
  EXPECT_TRUE(absl::IsOutOfRange(DecodeChunkHeader(std::span(bytes).first(80)).status()));
}

TEST(ChunkHeader, UnknownFeatureIsNamed) {
  ChunkHeader header = Valid();
  header.required_features |= 1u << 5;
  const absl::Status status = DecodeChunkHeader(EncodeChunkHeader(header)).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("0x20"));
}

// Memory is taken by these numbers, so a good CRC is not enough.
TEST(ChunkHeader, RefusesLengthsThatCannotBe) {
  ChunkHeader header = Valid();
  header.payload_bytes = kMaxPayloadBytes + 1;
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunkHeader(EncodeChunkHeader(header)).status()));
  header = Valid();
  header.content_bytes = kMaxPayloadBytes + 1;
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunkHeader(EncodeChunkHeader(header)).status()));
  header = Valid();
  header.required_features = 0;  // stored as it is
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunkHeader(EncodeChunkHeader(header)).status()));
  header = Valid();
  header.first_sequence = 1;
  header.last_sequence = header.content_bytes + 1;  // a record takes more than a byte
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunkHeader(EncodeChunkHeader(header)).status()));
}

}  // namespace
}  // namespace vcpulse::timeline

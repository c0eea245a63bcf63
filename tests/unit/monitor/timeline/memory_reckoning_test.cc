// What a chunk's content takes once parsed, to the byte: each field on its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "monitor/core/sample.h"
#include "monitor/timeline/chunk_decoder.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline {
namespace {

constexpr size_t kObject = 16 + 2 * sizeof(void*);
constexpr size_t kUnknown = 2 * kObject;
constexpr size_t kText = sizeof(std::string) + 2 * kObject;

// Fields of ChunkPayload, Session and VmTicks.
constexpr int kSession = 1;
constexpr int kTicks = 4;
constexpr int kHostName = 3;
constexpr int kHasBase = 3;   // bool
constexpr int kSequence = 4;  // repeated sint64
constexpr int kNone = 1000;

// Wire types.
constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kDelimited = 2;
constexpr int kStartGroup = 3;
constexpr int kFixed32 = 5;

std::string Number(uint64_t value) {
  std::string out;
  for (; value > 0x7f; value >>= 7) out += static_cast<char>(0x80 | (value & 0x7f));
  return out + static_cast<char>(value);
}

std::string Tag(int field, int wire_type) {
  return Number(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
}

std::string Text(int field, const std::string& content) {
  return Tag(field, kDelimited) + Number(content.size()) + content;
}

absl::StatusOr<size_t> Reckon(const std::string& content) {
  return ReckonMemory({reinterpret_cast<const uint8_t*>(content.data()), content.size()});
}

// Beyond an empty payload and the content itself; -1 where it is refused.
int64_t Beyond(const std::string& content) {
  const auto reckoned = Reckon(content);
  if (!reckoned.ok()) return -1;
  return static_cast<int64_t>(*reckoned - v1::ChunkPayload().SpaceUsedLong() - kObject -
                              content.size());
}

int64_t InSession(const std::string& content) {
  const int64_t all = Beyond(Text(kSession, content));
  return all < 0 ? all : all - static_cast<int64_t>(v1::Session().SpaceUsedLong() + kObject);
}

int64_t InTicks(const std::string& content) {
  const int64_t all = Beyond(Text(kTicks, content));
  return all < 0 ? all : all - static_cast<int64_t>(v1::VmTicks().SpaceUsedLong() + kObject);
}

TEST(ReckonMemory, OfMessagesTextsAndNumbers) {
  EXPECT_EQ(Beyond(""), 0);
  EXPECT_EQ(InSession(""), 0);
  EXPECT_EQ(InSession(Text(kHostName, "12345")), kText + 5);
  EXPECT_EQ(InTicks(Tag(kHasBase, kVarint) + Number(1)), 0);  // it has its place in the message
  EXPECT_EQ(InTicks(Tag(kSequence, kVarint) + Number(1)), 16);
}

TEST(ReckonMemory, OfWhatTheSchemaDoesNotKnow) {
  EXPECT_EQ(Beyond(Tag(kNone, kVarint) + Number(300)), kUnknown);
  EXPECT_EQ(Beyond(Tag(kNone, kFixed64) + std::string(8, 'x')), kUnknown);
  EXPECT_EQ(Beyond(Text(kNone, "12345")), kUnknown + kText + 5);
  // A known field of another wire type is kept as an unknown one.
  EXPECT_EQ(InTicks(Tag(kSequence, kFixed32) + std::string(4, 'x')), kUnknown);
  EXPECT_EQ(InTicks(Text(kHasBase, "12")), kUnknown + kText + 2);
  EXPECT_EQ(InSession(Tag(kHostName, kVarint) + Number(7)), kUnknown);
}

// However many there are, and however long each is.
TEST(ReckonMemory, CountsPackedNumbers) {
  std::string packed;
  uint64_t numbers = 0;
  uint64_t value = 1;
  while (packed.size() < 5000) {
    EXPECT_EQ(InTicks(Text(kSequence, packed)), 2 * 8 * numbers) << packed.size();
    packed += Number(value >> (value % 60));
    value = value * 6364136223846793005 + 1442695040888963407;
    ++numbers;
  }
  EXPECT_EQ(InTicks(Text(kSequence, std::string(5000, '\0'))), 2 * 8 * 5000);
  // Bytes of value 0 that another byte follows.
  EXPECT_EQ(InTicks(Text(kSequence, "\x80\x80\x01")), 2 * 8);
}

TEST(ReckonMemory, WhatIsCutIsRefused) {
  for (const std::string& content :
       {Tag(kSession, kDelimited) + Number(1), Tag(kNone, kVarint),
        Text(kSession, Tag(kHostName, kDelimited) + Number(9)),
        Text(kSession, Tag(kHostName, kDelimited)), Tag(kNone, kStartGroup)}) {
    EXPECT_EQ(Reckon(content).status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(Reckon(content).status().message()),
                testing::HasSubstr("not a ChunkPayload"));
  }
}

// The limit itself is allowed, one byte more is not.
TEST(ReckonMemory, EndsAtTheLimit) {
  const size_t empty = *Reckon("");
  const std::string number = Tag(kNone, kVarint) + Number(300);  // an odd number of bytes more
  size_t length = (kMaxChunkMemory - empty) / 2 - 200;
  std::string content = Text(kNone, std::string(length, 'x'));
  while (*Reckon(content) + 2 <= kMaxChunkMemory) {
    length += (kMaxChunkMemory - *Reckon(content)) / 2;
    content = Text(kNone, std::string(length, 'x'));
  }
  if (*Reckon(content) != kMaxChunkMemory) {  // a longer tag makes it even
    content = Tag(100'000, kDelimited) + content.substr(Tag(kNone, kDelimited).size());
  }
  ASSERT_EQ(*Reckon(content), kMaxChunkMemory);
  EXPECT_THAT(std::string(Reckon(content + number).status().message()),
              testing::HasSubstr("more memory than a chunk may (40 MiB)"));
  EXPECT_TRUE(CheckDecodingMemory({}, kMaxChunkMemory).ok());
  EXPECT_FALSE(CheckDecodingMemory({}, kMaxChunkMemory + 1).ok());
}

// A field that a message had once keeps its memory: in turn, two that take most of a chunk's.
TEST(ReckonMemory, ADecoderHoldsNoMoreThanOneChunks) {
  ChunkDecoder decoder;
  const auto open = [&decoder](const std::string& content) {
    ChunkHeader header;
    header.first_sequence = 1;
    header.last_sequence = 0;
    header.content_bytes = static_cast<uint32_t>(content.size());
    decoder.Open(header, {reinterpret_cast<const uint8_t*>(content.data()), content.size()})
        .IgnoreError();
    return decoder.context().SpaceUsedLong();
  };
  std::string vcpus;
  for (int i = 0; i < 150'000; ++i) vcpus += Text(5, "");
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_LE(open(Text(2, vcpus)), kMaxChunkMemory) << turn;
    EXPECT_LE(open(Text(kSession, Text(kHostName, std::string(15'000'000, 'x')))), kMaxChunkMemory)
        << turn;
  }
}

}  // namespace
}  // namespace vcpulse::timeline

#include "monitor/stream/nats/published_chunk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "monitor/timeline/chunk_encoder.h"
#include "tests/unit/monitor/stream/protocol/chunk.h"

namespace vcpulse::stream {
namespace {

using ::testing::HasSubstr;

const timeline::StreamId kPublished = StreamNumber(7);

std::string WhyNoChunk(const std::string& subject, std::span<const uint8_t> bytes) {
  const auto chunk = ParsePublishedChunk(subject, bytes);
  return chunk.ok() ? "" : std::string(chunk.status().message());
}

TEST(PublishedChunk, IsWholeAndOfTheStreamOfItsSubject) {
  const StreamChunk made = MakeChunk(kPublished, 1, 10);
  const std::string subject = SubjectOf("web-01", kPublished);
  const auto chunk = ParsePublishedChunk(subject, made.bytes);
  ASSERT_TRUE(chunk.ok()) << chunk.status();
  EXPECT_EQ(chunk->subject.agent_id, "web-01");
  EXPECT_EQ(chunk->header.first_sequence, 1u);
  EXPECT_EQ(chunk->settles_to, 10u);

  EXPECT_THAT(WhyNoChunk("vcpulse.v1.web-01", made.bytes), HasSubstr("subject"));
  EXPECT_THAT(WhyNoChunk(SubjectOf("web-01", StreamNumber(8)), made.bytes),
              HasSubstr("another stream"));
  std::vector<uint8_t> bytes(made.bytes.begin(), made.bytes.end());
  bytes.back() ^= 1;
  EXPECT_THAT(WhyNoChunk(subject, bytes), HasSubstr("damaged"));
  bytes.back() ^= 1;
  bytes.push_back(0);
  EXPECT_THAT(WhyNoChunk(subject, bytes), HasSubstr("damaged"));
  EXPECT_NE(WhyNoChunk(subject, {}), "");
}

TEST(PublishedChunk, HasSequenceNumbersOfARecording) {
  const std::string subject = SubjectOf("web-01", kPublished);
  v1::LostRecords lost;
  lost.set_first_sequence((uint64_t{1} << 62) + 1);
  lost.set_last_sequence((uint64_t{1} << 62) + 2);
  EXPECT_THAT(WhyNoChunk(subject, timeline::EncodeLostChunk(kPublished, lost)),
              HasSubstr("sequence numbers"));
  lost.set_first_sequence(5);
  lost.set_last_sequence(9);
  const std::vector<uint8_t> bytes = timeline::EncodeLostChunk(kPublished, lost);
  const auto chunk = ParsePublishedChunk(subject, bytes);
  ASSERT_TRUE(chunk.ok()) << chunk.status();
  EXPECT_EQ(chunk->settles_to, 9u);
}

}  // namespace
}  // namespace vcpulse::stream

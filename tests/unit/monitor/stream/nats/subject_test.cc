#include "monitor/stream/nats/subject.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/stream/protocol/agent_id.h"
#include "monitor/stream/protocol/frame.h"

namespace vcpulse::stream {
namespace {

constexpr timeline::StreamId kStreamOfSubject = {0xab, 0xcd};

TEST(Subject, HasOneTokenForAnyAgentId) {
  EXPECT_EQ(TokenOf("web-01_a"), "web-01_a");
  EXPECT_EQ(TokenOf("web-01.example"), "web-01=2Eexample");
  EXPECT_EQ(TokenOf("spiffe://a/b"), "spiffe=3A=2F=2Fa=2Fb");
  EXPECT_EQ(SubjectOf("web.1", kStreamOfSubject),
            "vcpulse.v1.web=2E1.abcd0000000000000000000000000000");
  EXPECT_EQ(SubjectsOf("web.1"), "vcpulse.v1.web=2E1.*");
}

TEST(Subject, ReadsWhatItWrote) {
  for (const std::string& agent :
       std::vector<std::string>{"web-01.example", "spiffe://a/b", "A", "a@b:c"}) {
    const auto subject = ParseSubject(SubjectOf(agent, kStreamOfSubject));
    ASSERT_TRUE(subject) << agent;
    EXPECT_EQ(subject->agent_id, agent);
    EXPECT_EQ(subject->stream, kStreamOfSubject);
  }
}

// One agent id has one subject, so that it has one folder; what leads elsewhere is none.
TEST(Subject, RefusesAnythingElse) {
  const std::string stream = ".abcd0000000000000000000000000000";
  EXPECT_TRUE(ParseSubject("vcpulse.v1.a" + stream));
  for (const std::string& text : std::vector<std::string>{
           std::string("vcpulse.v1.a"), "vcpulse.v1." + stream, "vcpulse.v2.a" + stream,
           "vcpulse.v1.a" + stream + "0", "vcpulse.v1.a.b" + stream, "vcpulse.v1.=61" + stream,
           "vcpulse.v1.a=2" + stream, "vcpulse.v1.a=2e" + stream, "vcpulse.v1.=2E=2E" + stream,
           "vcpulse.v1.a=00" + stream, "vcpulse.v1.a=" + stream, std::string(), std::string(".")}) {
    EXPECT_FALSE(ParseSubject(text)) << text;
  }
}

TEST(Subject, MessageIdsTellAgentsStreamsAndContentsApart) {
  EXPECT_EQ(MessageIdOf("a.b", kStreamOfSubject, 7, 0xab),
            "a=2Eb.abcd0000000000000000000000000000-7-000000ab");
}

// Any chunk that is sent as one fits into a message of 1 MiB, which a broker takes by default.
TEST(MessageIdTest, LeavesRoomForTheLongestChunk) {
  const std::string longest = "a" + std::string(252, ':');
  ASSERT_TRUE(CheckAgentId(longest).ok());
  ASSERT_FALSE(CheckAgentId(longest + ":").ok());
  timeline::StreamId stream{};
  stream.fill(0xff);
  const std::string id = MessageIdOf(longest, stream, ~uint64_t{0} >> 1, 0xffffffff);
  EXPECT_EQ(HeaderBytesOf("x"), std::string("NATS/1.0\r\nNats-Msg-Id: x\r\n\r\n").size());
  EXPECT_LE(kMaxChunkBytes + HeaderBytesOf(id), 1u << 20);
}

}  // namespace
}  // namespace vcpulse::stream

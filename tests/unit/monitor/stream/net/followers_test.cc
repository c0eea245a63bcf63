// What a collector tells its followers of streams, beside their chunks.
#include "monitor/stream/net/followers.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"

namespace vcpulse::stream {
namespace {

class Nobody final : public Peer::Owner {
 public:
  absl::Status Hello(Peer& /*peer*/, const v1::Hello& /*hello*/) override {
    return absl::OkStatus();
  }
  absl::Status Chunk(Peer& /*peer*/, const timeline::ChunkHeader& /*header*/,
                     std::span<const uint8_t> /*bytes*/) override {
    return absl::OkStatus();
  }
  absl::Status Gap(Peer& /*peer*/, const v1::LostRecords& /*lost*/) override {
    return absl::OkStatus();
  }
  void Ended(Peer& /*peer*/, const absl::Status& /*why*/) override {}
  bool MayRead(const Peer& /*peer*/) const override { return true; }
  int64_t NextRead_ns(const Peer& /*peer*/, int64_t now_ns) const override { return now_ns; }
  void Took(const Peer& /*peer*/, int64_t /*time_ns*/, int64_t /*now_ns*/) override {}
  void HoldsMore() override {}
};

TEST(FollowersTest, AStreamIsToldOnceAndOnlySoManyAreRemembered) {
  constexpr int kRemembered = 4096;
  Nobody owner;
  boost::asio::io_context context;
  const auto buffered = std::make_shared<Buffered>();
  const auto peer = std::make_shared<Peer>(
      context, 1, Arrival{.channel = NewPlainChannel(PlainSocket(context)), .from = "", .uid = {}},
      SessionLimits(), owner, buffered);
  peer->hello.emplace();
  Followers followers(context, MemoryShares(64 << 20), buffered);
  followers.Add(peer);

  const auto chunk = std::make_shared<const std::vector<uint8_t>>(1);
  const auto is_told_of = [&](int stream) {
    v1::Hello from;
    from.set_agent_id("agent");
    from.set_stream_id(absl::StrFormat("%016d", stream));
    const size_t before = peer->session().output().size();
    followers.Forward(from, {{.bytes = chunk}});
    return peer->session().output().size() > before;
  };
  for (int stream = 0; stream < kRemembered; ++stream) ASSERT_TRUE(is_told_of(stream));
  EXPECT_FALSE(is_told_of(0));
  EXPECT_TRUE(is_told_of(kRemembered));
  EXPECT_TRUE(is_told_of(0)) << "forgotten for the sake of memory";
  EXPECT_FALSE(is_told_of(0));
}

}  // namespace
}  // namespace vcpulse::stream

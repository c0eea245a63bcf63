// What a collector tells its followers of streams, beside their chunks.
#include "monitor/stream/net/followers.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/unit/monitor/stream/net/indifferent_owner.h"

namespace vcpulse::stream {
namespace {

TEST(FollowersTest, AStreamIsToldOnceAndOnlySoManyAreRemembered) {
  constexpr int kRemembered = 4096;
  IndifferentOwner owner;
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

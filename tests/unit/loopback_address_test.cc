#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/http/server.h"

namespace vcpulse::http {
namespace {

using ::testing::HasSubstr;

TEST(LoopbackAddress, IsOfThisMachine) {
  const auto v4 = ParseLoopbackAddress("tcp:127.0.0.1:8080");
  ASSERT_TRUE(v4.ok()) << v4.status();
  EXPECT_EQ(v4->host, "127.0.0.1");
  EXPECT_EQ(v4->port, 8080);
  EXPECT_EQ(ParseLoopbackAddress("tcp:[::1]:0")->host, "::1");
  EXPECT_EQ(ParseLoopbackAddress("tcp:localhost:1")->host, "localhost");
  for (const char* text :
       {"tcp:0.0.0.0:80", "tcp:10.0.0.1:80", "tcp:[::]:80", "tcp:example.org:80", "tcp::80"}) {
    EXPECT_THAT(std::string(ParseLoopbackAddress(text).status().message()),
                HasSubstr("only this machine"))
        << text;
  }
  for (const char* text : {"", "8080", "127.0.0.1:8080", "unix:/tmp/x", "tcp:80", "tcp:127.0.0.1:",
                           "tcp:127.0.0.1:65536", "tcp:127.0.0.1:-1", "tcp:127.0.0.1:x"}) {
    EXPECT_FALSE(ParseLoopbackAddress(text).ok()) << text;
  }
}

TEST(LoopbackAddress, TheUrlOfIt) {
  EXPECT_EQ(UrlOf("localhost", 8080), "http://localhost:8080/");
  EXPECT_EQ(UrlOf("::1", 80), "http://[::1]:80/");
}

TEST(LoopbackAddress, OwnNames) {
  for (const char* host : {"127.0.0.1:8080", "localhost:8080", "[::1]:8080"}) {
    EXPECT_TRUE(IsOwnName(host, 8080)) << host;
  }
  for (const char* host : {"", "evil.example:8080", "evil.example", "127.0.0.1", "127.0.0.1:8081",
                           "localhost:8080.evil.example", "localhost.evil.example:8080"}) {
    EXPECT_FALSE(IsOwnName(host, 8080)) << host;
  }
  EXPECT_TRUE(IsOwnName("localhost", 80));
  EXPECT_TRUE(IsOwnName("localhost:80", 80));
  EXPECT_FALSE(IsOwnName("localhos", 80));
}

}  // namespace
}  // namespace vcpulse::http

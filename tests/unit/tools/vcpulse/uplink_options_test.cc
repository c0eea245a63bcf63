#include "tools/vcpulse/uplink_options.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What is said of these options; "" where they are fine.
std::string Refusal(const UplinkOptions& options) {
  const auto request = ParseUplink(options, "/");
  if (request.ok()) return "";
  EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << request.status();
  return std::string(request.status().message());
}

TEST(UplinkOptions, NothingWithoutAnAddress) {
  const auto request = ParseUplink({}, "/");
  ASSERT_TRUE(request.ok());
  EXPECT_FALSE(request->has_value());
}

TEST(UplinkOptions, WhatMeansNothingWithoutAnAddress) {
  EXPECT_THAT(Refusal({.peer = {.agent_id = "a"}}), StartsWith("--agent-id: "));
  EXPECT_THAT(Refusal({.peer = {.certificate = "a"}}), StartsWith("--cert: "));
  EXPECT_THAT(Refusal({.peer = {.key = "a"}}), StartsWith("--key: "));
  EXPECT_THAT(Refusal({.peer = {.authorities = "a"}}), StartsWith("--ca: "));
  EXPECT_THAT(Refusal({.peer = {.insecure = true}}), StartsWith("--insecure: "));
  EXPECT_THAT(Refusal({.spool_dir = "x"}), StartsWith("--spool-dir: "));
  EXPECT_THAT(Refusal({.spool_size = "1G"}), StartsWith("--spool-size: "));
  EXPECT_THAT(Refusal({.drain = "1s"}), StartsWith("--drain: "));
  EXPECT_THAT(Refusal({.require_collector = true}),
              AllOf(StartsWith("--require-collector: "), HasSubstr("--to ADDR")));
  EXPECT_THAT(Refusal({.require_delivery = true}), StartsWith("--require-delivery: "));
}

TEST(UplinkOptions, PortZeroIsForListeners) {
  EXPECT_THAT(Refusal({.to = {"tcp:127.0.0.1:0"}, .spool_dir = "/x"}),
              StartsWith("--to: tcp:127.0.0.1:0: nobody listens on port 0"));
}

TEST(UplinkOptions, WhatIsAskedFor) {
  const auto request = ParseUplink({.to = {"unix:/run/c.sock", "tcp:[::1]:4711"},
                                    .peer = {.agent_id = "host-a"},
                                    .spool_dir = "/x",
                                    .spool_size = "2MiB",
                                    .drain = "9s",
                                    .require_collector = true,
                                    .require_delivery = true},
                                   "/");
  ASSERT_TRUE(request.ok()) << request.status();
  const stream::RecordUplink::Options& uplink = **request;
  EXPECT_EQ(ToText(uplink.uplink.addresses), "unix:/run/c.sock or tcp:[::1]:4711");
  EXPECT_EQ(uplink.uplink.identity.agent_id, "host-a");
  EXPECT_EQ(uplink.uplink.spool.directory, "/x");
  EXPECT_EQ(uplink.uplink.spool.max_disk_bytes, 2u << 20);
  EXPECT_EQ(uplink.drain, absl::Seconds(9));
  EXPECT_TRUE(uplink.require_collector);
  EXPECT_TRUE(uplink.require_delivery);
}

TEST(UplinkOptions, Defaults) {
  const auto request = ParseUplink({.to = {"unix:/run/c.sock"}, .spool_dir = "/x"}, "/");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ((*request)->uplink.spool.max_disk_bytes, 256u << 20);
  EXPECT_EQ((*request)->drain, absl::Seconds(5));
  EXPECT_EQ((*request)->uplink.identity.agent_id, stream::OwnHostName());
  EXPECT_FALSE((*request)->require_collector);
}

TEST(UplinkOptions, ValuesThatCannotBe) {
  const auto with = [](UplinkOptions options) {
    if (options.to.empty()) options.to = {"unix:/run/c.sock"};
    return Refusal(options);
  };
  EXPECT_THAT(with({.to = {"tcp:nope"}}), AllOf(StartsWith("--to: "), HasSubstr("tcp:nope")));
  EXPECT_THAT(with({.peer = {.agent_id = "../x"}}), StartsWith("--agent-id: "));
  EXPECT_THAT(with({.spool_dir = ""}), StartsWith("--spool-dir: "));
  EXPECT_THAT(with({.spool_size = "1023K"}), HasSubstr("is less than 1MiB"));
  EXPECT_EQ(with({.spool_size = "1024K"}), "");
  EXPECT_THAT(with({.drain = "5"}), StartsWith("--drain: '5' has no unit"));
}

TEST(UplinkOptions, TlsNeedsItsFilesAndNothingElseDoes) {
  const PeerOptions all{.certificate = "c", .key = "k", .authorities = "a"};
  EXPECT_EQ(Refusal({.to = {"unix:/x", "tls:h:1"}, .peer = all, .spool_dir = "/x"}), "");
  EXPECT_THAT(Refusal({.to = {"unix:/x"}, .peer = all}), HasSubstr("for tls: addresses"));
  for (const std::string missing : {"--cert", "--key", "--ca"}) {
    PeerOptions some = all;
    (missing == "--cert"  ? some.certificate
     : missing == "--key" ? some.key
                          : some.authorities)
        .reset();
    EXPECT_THAT(Refusal({.to = {"tls:h:1"}, .peer = some}), HasSubstr(missing + " is not given"));
  }
}

// Each value is one address, though brackets and commas are CLI11's own syntax for lists.
TEST(UplinkOptions, FlagsAreReadOneValueAtATime) {
  CLI::App app;
  UplinkOptions options;
  AddUplinkOptions(app, options);
  std::string file;
  app.add_option("FILE", file);
  app.parse("--to tcp:[::1]:1 x.vpt --to unix:a,b --spool-size 1G");
  EXPECT_THAT(options.to, ElementsAre("tcp:[::1]:1", "unix:a,b"));
  EXPECT_EQ(file, "x.vpt");
  EXPECT_EQ(options.spool_size, "1G");
}

class DefaultSpool : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"STATE_DIRECTORY", "XDG_STATE_HOME"}) unsetenv(name);
    setenv("HOME", "/home/x", 1);
  }
};

TEST_F(DefaultSpool, OfSystemdFirst) {
  setenv("STATE_DIRECTORY", "/var/lib/a:/var/lib/b", 1);
  EXPECT_EQ(*DefaultSpoolDirectory(), "/var/lib/a/spool");
}

TEST_F(DefaultSpool, OfTheUser) {
  if (geteuid() == 0) {
    EXPECT_EQ(*DefaultSpoolDirectory(), "/var/lib/vcpulse/spool");
    return;
  }
  EXPECT_EQ(*DefaultSpoolDirectory(), "/home/x/.local/state/vcpulse/spool");
  setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(*DefaultSpoolDirectory(), "/state/vcpulse/spool");
  unsetenv("XDG_STATE_HOME");
  unsetenv("HOME");
  EXPECT_TRUE(absl::IsFailedPrecondition(DefaultSpoolDirectory().status()));
}

}  // namespace
}  // namespace vcpulse::tools

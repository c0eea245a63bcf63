#include <set>

#include "monitor/stream/protocol/address.h"
#include "monitor/stream/protocol/agent_id.h"
#include "monitor/stream/protocol/hello.h"
#include "tests/unit/monitor/stream/protocol/fixture.h"

namespace vcpulse::stream {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Reason(const std::string& text) {
  const auto address = ParseAddress(text);
  EXPECT_TRUE(absl::IsInvalidArgument(address.status())) << text;
  return std::string(address.status().message());
}

TEST(StreamAddress, EachKindIsReadAndWritten) {
  using Kind = Address::Kind;
  const std::vector<std::pair<std::string, Address>> cases = {
      {"unix:/run/vcpulse/collect.sock",
       {.kind = Kind::kUnix, .path = "/run/vcpulse/collect.sock"}},
      {"unix:a:b", {.kind = Kind::kUnix, .path = "a:b"}},
      {"tcp:localhost:7370", {.kind = Kind::kTcp, .host = "localhost", .port = 7370}},
      {"tcp:127.0.0.1:0", {.kind = Kind::kTcp, .host = "127.0.0.1", .port = 0}},
      {"tcp:[::1]:65535", {.kind = Kind::kTcp, .host = "::1", .port = 65535}},
      {"tcp:[fe80::1%eth0]:1", {.kind = Kind::kTcp, .host = "fe80::1%eth0", .port = 1}},
      {"tls:collect.example-1.org:443",
       {.kind = Kind::kTls, .host = "collect.example-1.org", .port = 443}}};
  for (const auto& [text, address] : cases) {
    const auto parsed = ParseAddress(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, address) << text;
    EXPECT_EQ(ToText(address), text);
  }
}

TEST(StreamAddress, WhatIsNoneIsToldInOneLine) {
  EXPECT_THAT(Reason(""), HasSubstr("none of unix:, tcp: and tls:"));
  EXPECT_THAT(Reason("host:7370"), HasSubstr("none of unix:, tcp: and tls:"));
  EXPECT_THAT(Reason("TCP:host:7370"), HasSubstr("none of unix:, tcp: and tls:"));
  EXPECT_THAT(Reason("unix:"), HasSubstr("path is missing"));
  EXPECT_THAT(Reason("unix:" + std::string(108, 'x')), HasSubstr("at most 107 bytes"));
  EXPECT_TRUE(ParseAddress("unix:" + std::string(107, 'x')).ok());
  EXPECT_THAT(Reason(std::string("unix:a\0b", 8)), HasSubstr("zero byte"));
  EXPECT_THAT(Reason("tcp:host"), HasSubstr("port is missing"));
  for (const char* port : {"", "65536", "-1", "+1", " 1", "1x", "0x10"}) {
    EXPECT_THAT(Reason(absl::StrCat("tcp:host:", port)), HasSubstr("number from 0 to 65535"));
  }
  EXPECT_THAT(Reason("tcp::1"), HasSubstr("host is missing"));
  EXPECT_THAT(Reason("tcp:a b:1"), HasSubstr("host is missing or no name"));
  EXPECT_THAT(Reason("tcp:" + std::string(254, 'h') + ":1"), HasSubstr("host is missing or no"));
  EXPECT_THAT(Reason("tcp:::1:80"), HasSubstr("needs brackets"));
  EXPECT_THAT(Reason("tcp:[host]:80"), HasSubstr("not an IPv6 address"));
  EXPECT_THAT(Reason("tcp:[]:80"), HasSubstr("not an IPv6 address"));
  EXPECT_THAT(Reason("tcp:[::1%e\n]:80"), HasSubstr("not an IPv6 address"));
  EXPECT_THAT(Reason("tcp:a\nb\x1b[2J:1"), Not(HasSubstr("\n")));
  EXPECT_THAT(Reason("tcp:a\nb:1"), HasSubstr("\"tcp:a\\nb:1\""));
}

TEST(StreamAddress, PortZeroIsNoDestination) {
  for (const char* text : {"tcp:host:0", "tls:[::1]:00"}) {
    EXPECT_TRUE(ParseAddress(text).ok()) << text;
    const auto destination = ParseDestination(text);
    EXPECT_TRUE(absl::IsInvalidArgument(destination.status())) << destination.status();
    EXPECT_THAT(std::string(destination.status().message()), HasSubstr(":0: nobody listens on"));
  }
  EXPECT_EQ(*ParseDestination("tcp:host:1"), *ParseAddress("tcp:host:1"));
  EXPECT_EQ(*ParseDestination("unix:x"), *ParseAddress("unix:x"));
  EXPECT_FALSE(ParseDestination("tcp:host").ok());
}

TEST(StreamAddress, OnlyThisMachineIsLoopback) {
  for (const char* text : {"unix:/x", "tcp:localhost:1", "tls:LOCALHOST:1", "tcp:127.0.0.1:1",
                           "tcp:127.255.3.4:1", "tcp:[::1]:1", "tcp:[0:0:0:0:0:0:0:1]:1"}) {
    EXPECT_TRUE(IsLoopback(*ParseAddress(text))) << text;
  }
  for (const char* text :
       {"tcp:0.0.0.0:1", "tcp:[::]:1", "tcp:128.0.0.1:1", "tcp:localhost.example:1",
        "tcp:127.0.0.1.example:1", "tcp:[fe80::1]:1", "tcp:127.1:1"}) {
    EXPECT_FALSE(IsLoopback(*ParseAddress(text))) << text;
  }
}

TEST(AgentId, WhatMayNameAnAgent) {
  for (const char* id : {"a", "0", "host-a.example", "spiffe://domain/path", "u@h:1_x"}) {
    EXPECT_TRUE(CheckAgentId(id).ok()) << id;
  }
  EXPECT_TRUE(CheckAgentId(std::string(253, 'a')).ok());
  for (const std::string id : {"", ".", "..", "../x", "/x", "-x", "_x", "a b", "a\n", "a=b", "a%2e",
                               "h\xc3\xa4", "a\\b", "a*", "a\x7f"}) {
    const absl::Status status = CheckAgentId(id);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << id;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
  EXPECT_FALSE(CheckAgentId(std::string(254, 'a')).ok());
  EXPECT_LE(CheckAgentId(std::string(5000, 'a')).message().size(), 200u);
  EXPECT_FALSE(CheckAgentId(std::string("a\0b", 3)).ok());
}

TEST(AgentId, FolderIsOneSafeComponentAndTellsIdsApart) {
  EXPECT_EQ(FolderOf("Host-a_1.example"), "Host-a_1.example");
  EXPECT_EQ(FolderOf("spiffe://d/p@q"), "spiffe=3A=2F=2Fd=2Fp=40q");
  EXPECT_EQ(FolderOf("a.."), "a..");
  // Ids that CheckAgentId refuses are made safe all the same.
  EXPECT_EQ(FolderOf(".."), "=2E.");
  EXPECT_EQ(FolderOf(""), "=");
  EXPECT_EQ(FolderOf("="), "=3D");
  EXPECT_EQ(FolderOf(std::string("\0\n", 2)), "=00=0A");
  // A long name ends with a hash of the id (the first digit changed): printf %253s | tr ' ' : |
  // sha1sum
  EXPECT_THAT(FolderOf(std::string(253, ':')), testing::EndsWith("=ff42ff065a48189a"));

  std::vector<std::string> ids = {"",      "=", "=3D", "a",   "A",  "a/b",
                                  "a=2Fb", ".", "..",  "a:b", "a@b"};
  for (const char last : {'x', 'y', '/'}) {
    ids.push_back(std::string(252, 'a') + last);
    ids.push_back("a" + std::string(251, '/') + last);
    ids.push_back("a" + std::string(90, '/') + std::string(161, 'b') + last);
  }
  std::set<std::string> folders;
  for (const std::string& id : ids) {
    const std::string folder = FolderOf(id);
    EXPECT_TRUE(folders.insert(folder).second) << folder;
    EXPECT_LE(folder.size(), 255u);
    EXPECT_FALSE(folder.empty());
    EXPECT_NE(folder[0], '.');
    EXPECT_THAT(folder, Not(HasSubstr("/")));
    const bool shortened = folder.size() == 255 && folder[238] == '=';
    EXPECT_EQ(AgentIdOf(folder), shortened ? folder : id);
  }
}

// `=` inside of the value makes DuckDB refuse all files of the tree.
TEST(AgentId, ItsHivePartitionHasNoFurtherEqualsSign) {
  EXPECT_EQ(HostPartitionOf(FolderOf("web-01.example")), "host=web-01.example");
  EXPECT_EQ(HostPartitionOf(FolderOf("spiffe://d/p@q")), "host=spiffe%3A%2F%2Fd%2Fp%40q");
  EXPECT_EQ(HostPartitionOf("a="), "host=a%3D");
  EXPECT_EQ(HostPartitionOf("a=zz"), "host=a%3Dzz");
  std::set<std::string> partitions;
  for (const char last : {'x', 'y'}) {
    for (const size_t length : {244u, 245u, 246u, 247u, 252u}) {
      for (const char* const middle : {"", "/", "//", "///"}) {
        const std::string id = "a" + std::string(length, 'b') + middle + last;
        const std::string partition = HostPartitionOf(FolderOf(id));
        EXPECT_TRUE(partitions.insert(partition).second) << partition;
        EXPECT_LE(partition.size(), 255u);
        EXPECT_EQ(partition.rfind('='), 4u);
        const size_t escape = partition.rfind('%');
        if (escape != std::string::npos) {
          EXPECT_TRUE(partition.substr(escape).starts_with("%2F") ||
                      partition.substr(escape).starts_with("%3D"))
              << partition;
        }
      }
    }
  }
}

// A short id cannot be made to have the folder of a long one: a = that stands for a byte is
// followed by upper-case digits.
TEST(AgentId, NoIdHasTheFolderOfAShortenedOne) {
  for (int i = 0; i < 200; ++i) {
    const std::string folder = FolderOf("a" + std::string(250, '/') + std::to_string(i));
    ASSERT_EQ(folder.size(), 255u);
    EXPECT_EQ(folder[238], '=');
    EXPECT_TRUE(folder[239] >= 'a' && folder[239] <= 'f') << folder;
    EXPECT_EQ(AgentIdOf(folder), folder);
  }
}

TEST(AgentId, FoldersOfOthersAreNamedAsTheyAre) {
  for (const char* folder :
       {"lost+found", "=", "a=", "a=2", "a=2f", "a=41", "=zz", "a b", "=2E."}) {
    const std::string id = AgentIdOf(folder);
    EXPECT_TRUE(id == folder || FolderOf(id) == folder) << folder;
  }
  EXPECT_EQ(AgentIdOf("a=41"), "a=41");  // never made: A stays
  EXPECT_EQ(AgentIdOf("a=2fb"), "a=2fb");
  EXPECT_EQ(AgentIdOf("lost+found"), "lost+found");
}

TEST(PeerText, IsOneLineOfUtf8) {
  EXPECT_EQ(OneLine("a\nb\x1b[2J\xff", 100), "a?b?[2J?");
  EXPECT_EQ(OneLine("h\xc3\xa4x", 4), "h\xc3\xa4x");
  EXPECT_EQ(OneLine("h\xc3\xa4x", 3), "h\xc3\xa4");
  EXPECT_EQ(OneLine("h\xc3\xa4x", 2), "h");  // not half a character
  EXPECT_EQ(OneLine("", 2), "");
}

}  // namespace
}  // namespace vcpulse::stream

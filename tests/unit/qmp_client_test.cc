#include "kvm/discovery/qmp_client.h"

#include <unistd.h>

#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/proc_dir.h"
#include "tests/fakes/qmp_server.h"

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Script = fakes::QmpServer::Script;

constexpr absl::Duration kLong = absl::Seconds(20);  // never reached
constexpr absl::Duration kShort = absl::Milliseconds(150);

TEST(ParseQmpAddress, KnowsItsForms) {
  EXPECT_EQ(*ParseQmpAddress("unix:/run/q"), (QmpAddress{"/run/q", "", ""}));
  EXPECT_EQ(*ParseQmpAddress("unix:q"), (QmpAddress{"q", "", ""}));
  EXPECT_EQ(*ParseQmpAddress("/run/q"), (QmpAddress{"/run/q", "", ""}));
  EXPECT_EQ(*ParseQmpAddress("./tcp:q"), (QmpAddress{"./tcp:q", "", ""}));
  EXPECT_EQ(*ParseQmpAddress("tcp:localhost:3636"), (QmpAddress{"", "localhost", "3636"}));
  EXPECT_EQ(*ParseQmpAddress("tcp:[::1]:3636"), (QmpAddress{"", "::1", "3636"}));
}

// Each is answered with the known forms, and no socket is touched.
TEST(ParseQmpAddress, RefusesOthers) {
  for (const std::string& text :
       {std::string(""), std::string("qmp"), std::string("unix:"), std::string("tcp:"),
        std::string("tcp:host"), std::string("tcp::1"), std::string("tcp:h:"),
        std::string("tcp:h:0"), std::string("tcp:h:65536"), std::string("tcp:h:x"),
        std::string("tcp:::1:5"), std::string("tcp:[]:5"), "unix:/" + std::string(107, 'x')}) {
    const auto address = ParseQmpAddress(text);
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(address.status().message()), HasSubstr("tcp:HOST:PORT")) << text;
  }
  EXPECT_TRUE(ParseQmpAddress("unix:/" + std::string(106, 'x')).ok());
}

class QmpClientTest : public ::testing::Test {
 protected:
  fakes::ProcDir directory_;  // for its temporary directory alone
};

TEST_F(QmpClientTest, AsksOverAUnixSocketAndNamesItsOwner) {
  fakes::QmpServer server(directory_.Path("q"), Script{});
  const auto reply = QueryQmp(server.address(), kLong);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_THAT(reply->answers.cpus, ElementsAre(QmpCpu{0, 101}, QmpCpu{1, 102}));
  EXPECT_EQ(reply->answers.kvm_enabled, true);
  EXPECT_EQ(reply->answers.name, "fake");
  EXPECT_EQ(reply->server_pid, ::getpid());
}

TEST_F(QmpClientTest, AsksOverTcp) {
  fakes::QmpServer server(Script{});
  const auto reply = QueryQmp(server.address(), kLong);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->answers.cpus.size(), 2u);
  EXPECT_EQ(reply->server_pid, std::nullopt);
}

// QMP serves one client at a time: a second query works only if the first let go.
TEST_F(QmpClientTest, LetsGoOfTheSocket) {
  fakes::QmpServer server(directory_.Path("q"), Script{});
  ASSERT_TRUE(QueryQmp(server.address(), kLong).ok());
  EXPECT_TRUE(QueryQmp(server.address(), kLong).ok());
}

// A socket that another client holds accepts and stays silent.
TEST_F(QmpClientTest, SilenceEndsWithTheTimeOut) {
  Script silent;
  silent.greeting = "";
  fakes::QmpServer server(directory_.Path("q"), silent);
  const absl::Time begin = absl::Now();
  const auto reply = QueryQmp(server.address(), kShort);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(reply.status().message()),
              testing::AllOf(HasSubstr(server.address()), HasSubstr("another client")));
  EXPECT_GE(absl::Now() - begin, kShort);
  EXPECT_LT(absl::Now() - begin, kShort + absl::Seconds(5));
}

// The time-out is for the whole: a peer that sends a little all the time does not stretch it.
TEST_F(QmpClientTest, SilenceAfterTheGreetingEndsToo) {
  Script lazy;
  lazy.answers.erase("query-kvm");
  fakes::QmpServer server(directory_.Path("q"), lazy);
  const auto reply = QueryQmp(server.address(), kShort);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("answers did not come"));
}

TEST_F(QmpClientTest, RefusalNamesTheAddress) {
  for (const std::string& address :
       {std::string("tcp:127.0.0.1:1"), "unix:" + directory_.Path("none").string()}) {
    const auto reply = QueryQmp(address, kLong);
    EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(reply.status().message()), HasSubstr(address));
  }
}

TEST_F(QmpClientTest, GarbageIsDataLossWithTheAddress) {
  Script http;
  http.greeting = "HTTP/1.1 400 Bad Request\r\n";
  fakes::QmpServer server(directory_.Path("q"), http);
  const auto reply = QueryQmp(server.address(), kLong);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(reply.status().message()),
              testing::AllOf(HasSubstr(server.address()), HasSubstr("HTTP/1.1 400")));
}

// As when the VM ends while it is asked.
TEST_F(QmpClientTest, AClosedConnectionIsUnavailable) {
  Script closing;
  closing.close_after_greeting = true;
  fakes::QmpServer server(directory_.Path("q"), closing);
  const auto reply = QueryQmp(server.address(), kLong);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace vcpulse::kvm

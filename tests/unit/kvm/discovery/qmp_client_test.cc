#include "kvm/discovery/qmp_client.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kvm/discovery/qmp_protocol.h"
#include "tests/fakes/proc_dir.h"
#include "tests/fakes/qmp_server.h"

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
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

constexpr char kGreeting[] =
    R"({"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": ""}, "capabilities": ["oob"]}})"
    "\r\n";
constexpr char kEmpty[] = "{\"return\": {}}\r\n";
// Of a real guest, but for the order.
constexpr char kCpus[] =
    R"({"return": [{"thread-id": 9758, "props": {"core-id": 1, "thread-id": 0, "socket-id": 0}, "qom-path": "/machine/unattached/device[2]", "cpu-index": 1, "target": "x86_64"}, {"thread-id": 9757, "props": {"core-id": 0, "thread-id": 0, "socket-id": 0}, "qom-path": "/machine/unattached/device[0]", "cpu-index": 0, "target": "x86_64"}]})"
    "\r\n";
constexpr char kKvm[] = "{\"return\": {\"enabled\": true, \"present\": true}}\r\n";
constexpr char kName[] = "{\"return\": {\"name\": \"web\"}}\r\n";
constexpr char kUuid[] = "{\"return\": {\"UUID\": \"5c7d0c7e-8b0a-4a35-9a3e-1f2d3c4b5a69\"}}\r\n";

// A protocol that has been greeted and has been let into command mode.
QmpProtocol InCommandMode() {
  QmpProtocol protocol;
  EXPECT_TRUE(protocol.Receive(kGreeting).ok());
  EXPECT_TRUE(protocol.Receive(kEmpty).ok());
  protocol.TakeOutput();
  return protocol;
}

void ExpectWholeExchange(const QmpProtocol& protocol) {
  ASSERT_TRUE(protocol.done());
  const QmpAnswers& answers = protocol.answers();
  // The topology's thread-id (0 here) is not the TID.
  EXPECT_THAT(answers.cpus, ElementsAre(QmpCpu{0, 9757}, QmpCpu{1, 9758}));
  EXPECT_EQ(answers.kvm_enabled, true);
  EXPECT_EQ(answers.name, "web");
  EXPECT_EQ(answers.uuid, "5c7d0c7e-8b0a-4a35-9a3e-1f2d3c4b5a69");
}

// Before the greeting nothing may be sent; each question waits for the answer before it.
TEST(QmpProtocol, AsksOneQuestionAfterAnother) {
  QmpProtocol protocol;
  EXPECT_EQ(protocol.TakeOutput(), "");
  const std::vector<std::pair<std::string, std::string>> steps = {
      {kGreeting, "qmp_capabilities"},
      {kEmpty, "query-cpus-fast"},
      {kCpus, "query-kvm"},
      {kKvm, "query-name"},
      {kName, "query-uuid"},
  };
  for (const auto& [received, asked] : steps) {
    EXPECT_FALSE(protocol.done());
    ASSERT_TRUE(protocol.Receive(received).ok()) << received;
    EXPECT_EQ(protocol.TakeOutput(), "{\"execute\": \"" + asked + "\"}\n");
    EXPECT_EQ(protocol.TakeOutput(), "");
  }
  ASSERT_TRUE(protocol.Receive(kUuid).ok());
  EXPECT_EQ(protocol.TakeOutput(), "");
  ExpectWholeExchange(protocol);
}

// Sockets cut where they like.
TEST(QmpProtocol, TakesBytesOneByOneAndAllAtOnce) {
  const std::string all = std::string(kGreeting) + kEmpty + kCpus + kKvm + kName + kUuid;
  QmpProtocol whole;
  ASSERT_TRUE(whole.Receive(all).ok());
  ExpectWholeExchange(whole);
  QmpProtocol bytes;
  for (const char byte : all) ASSERT_TRUE(bytes.Receive({&byte, 1}).ok());
  ExpectWholeExchange(bytes);
}

TEST(QmpProtocol, IgnoresEventsAnywhereAfterTheGreeting) {
  const std::string event =
      "{\"timestamp\": {\"seconds\": 1, \"microseconds\": 2}, \"event\": \"RTC_CHANGE\"}\r\n\r\n";
  QmpProtocol protocol;
  for (const char* line : {kGreeting, kEmpty, kCpus, kKvm, kName, kUuid}) {
    ASSERT_TRUE(protocol.Receive(line).ok());
    ASSERT_TRUE(protocol.Receive(event).ok());
  }
  ExpectWholeExchange(protocol);
}

// A name is a label: a QEMU that has none, or knows no such question, is still measured.
TEST(QmpProtocol, QuestionsOfLabelsMayFail) {
  QmpProtocol protocol = InCommandMode();
  ASSERT_TRUE(protocol.Receive(kCpus).ok());
  const std::string unknown = "{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"no\"}}\n";
  ASSERT_TRUE(protocol.Receive(unknown).ok());
  ASSERT_TRUE(protocol.Receive(kEmpty).ok());
  ASSERT_TRUE(protocol.Receive(unknown).ok());
  ASSERT_TRUE(protocol.done());
  EXPECT_EQ(protocol.answers().kvm_enabled, std::nullopt);
  EXPECT_EQ(protocol.answers().name, std::nullopt);
  EXPECT_EQ(protocol.answers().uuid, std::nullopt);
}

TEST(QmpProtocol, AQemuTooOldIsToldWhatToDo) {
  QmpProtocol protocol = InCommandMode();
  const absl::Status status = protocol.Receive(
      "{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"The command has not been "
      "found\"}}\n");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--tid"));
}

// Everything else that listens on sockets. The message shows what came, on one line.
TEST(QmpProtocol, GarbageIsDataLoss) {
  for (const char* text :
       {"HTTP/1.1 400 Bad Request\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "{}\n", "[]\n", "{\"QMP\": \n",
        "\x1b[2J\x7f", "no newline", "{\"return\": {}}\n"}) {
    QmpProtocol protocol;
    const absl::Status status = protocol.Receive(text);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\x1b")));
  }
}

TEST(QmpProtocol, TheHumanMonitorIsNamed) {
  QmpProtocol protocol;
  const absl::Status status =
      protocol.Receive("QEMU 7.2.22 monitor - type 'help' for more information\r\n");
  EXPECT_THAT(std::string(status.message()), HasSubstr("human monitor"));
}

// TIDs from such an answer would be somebody else's threads.
TEST(QmpProtocol, CpusThatMakeNoSenseAreDataLoss) {
  for (const char* answer :
       {"[]", "{}", "[1]", "[{\"cpu-index\": 0}]", "[{\"cpu-index\": 0, \"thread-id\": 0}]",
        "[{\"cpu-index\": -1, \"thread-id\": 5}]",
        "[{\"cpu-index\": 0, \"thread-id\": 4294967301}]",
        "[{\"cpu-index\": 0, \"thread-id\": \"5\"}]",
        "[{\"cpu-index\": 0, \"thread-id\": 5}, {\"cpu-index\": 0, \"thread-id\": 6}]",
        "[{\"cpu-index\": 0, \"thread-id\": 5}, {\"cpu-index\": 1, \"thread-id\": 5}]"}) {
    QmpProtocol protocol = InCommandMode();
    const absl::Status status = protocol.Receive(std::string("{\"return\": ") + answer + "}\n");
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << answer;
  }
}

// A peer that never ends its line must not take our memory.
TEST(QmpProtocol, ALineOverTheLimitIsRefused) {
  QmpProtocol protocol;
  const std::string chunk = "{" + std::string(65535, ' ');
  size_t taken = 0;
  absl::Status status;
  while (status.ok() && taken < 4 * QmpProtocol::kLongestLine) {
    status = protocol.Receive(chunk);
    taken += chunk.size();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(taken, QmpProtocol::kLongestLine + chunk.size());
  EXPECT_EQ(protocol.Receive(kGreeting), status) << "after an error nothing more is taken";
}

}  // namespace

}  // namespace vcpulse::kvm

// The server on a real socket of this machine.
#include "monitor/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "kvm/base/fd.h"
#include "tests/fakes/http_client.h"

namespace vcpulse::http {
namespace {

using fakes::ConnectTo;
using fakes::Exchange;
using fakes::HttpGet;
using fakes::ReceiveAll;
using fakes::Send;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Answer Echo(const Request& request) {
  if (request.target == "/nothing") return {.status = 404, .body = "no\n"};
  return {.body = std::string(request.method) + " " + std::string(request.target) + " " +
                  std::string(request.host) + " " + std::to_string(request.port)};
}

std::unique_ptr<Server> StartServer(Handler handler = Echo, const Server::Options& options = {}) {
  auto server = Server::Start({.host = "127.0.0.1"}, std::move(handler), options);
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(HttpServer, AnswersAsItsHandlerSays) {
  const auto server = StartServer();
  const std::string port = std::to_string(server->port());
  EXPECT_THAT(HttpGet(server->port(), "/a?b"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Cache-Control: no-store\r\n"),
                    EndsWith("\r\n\r\nGET /a?b 127.0.0.1:" + port + " " + port)));
  EXPECT_THAT(HttpGet(server->port(), "/nothing"),
              AllOf(StartsWith("HTTP/1.1 404 "), EndsWith("\r\n\r\nno\n")));
}

TEST(HttpServer, SeveralRequestsOfOneConnectionInTurn) {
  const auto server = StartServer();
  const std::string answers =
      Exchange(server->port(),
               "GET /one HTTP/1.1\r\nHost: x\r\n\r\n"
               "HEAD /two HTTP/1.1\r\nHost: y\r\n\r\nGET /3 HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string port = std::to_string(server->port());
  EXPECT_THAT(
      answers,
      AllOf(HasSubstr("GET /one x " + port + "HTTP/1.1 200"),
            HasSubstr("Content-Length: " + std::to_string(("HEAD /two y " + port).size()) + "\r\n"),
            Not(HasSubstr("HEAD /two")), EndsWith("GET /3  " + port)));
}

TEST(HttpServer, OnlyReadsReachTheHandler) {
  int handled = 0;
  const auto server = StartServer([&](const Request& request) {
    ++handled;
    return Echo(request);
  });
  for (const char* head : {"POST / HTTP/1.1\r\n", "BREW / HTTP/1.1\r\n", "DELETE / HTTP/1.1\r\n",
                           "POST / HTTP/1.1\r\nContent-Length: 10\r\n"}) {
    EXPECT_THAT(Exchange(server->port(), std::string(head) + "Connection: close\r\n\r\n"),
                AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: GET, HEAD\r\n")))
        << head;
  }
  EXPECT_THAT(Exchange(server->port(), "GET / HTTP/1.1\r\nContent-Length: 10\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Exchange(server->port(), "what?\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_EQ(handled, 0);
}

TEST(HttpServer, HugeHeadsAreRefused) {
  const auto server = StartServer();
  const auto with_head_of = [&](size_t bytes) {
    return Exchange(server->port(), "GET / HTTP/1.1\r\nConnection: close\r\nX: " +
                                        std::string(bytes, 'a') + "\r\n\r\n");
  };
  EXPECT_THAT(with_head_of(8000), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(with_head_of(8192), StartsWith("HTTP/1.1 431 "));
  with_head_of(1 << 20);
  EXPECT_THAT(with_head_of(0), StartsWith("HTTP/1.1 200 ")) << "others are not harmed";
}

TEST(HttpServer, OneMoreTakesThePlaceOfTheOneThatIsIdleTheLongest) {
  const auto server = StartServer(Echo, {.most_connections = 2});
  const Fd first = ConnectTo(server->port());
  const Fd second = ConnectTo(server->port());
  EXPECT_THAT(HttpGet(server->port(), "/"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(ReceiveAll(first), "");
  ASSERT_TRUE(Send(second, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(ReceiveAll(second), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpServer, ClientsThatAreTooSlowAreDropped) {
  const auto server = StartServer(Echo, {.patience = std::chrono::milliseconds(50)});
  const Fd silent = ConnectTo(server->port());
  const Fd half = ConnectTo(server->port());
  ASSERT_TRUE(Send(half, "GET / HTTP/1.1\r\nHost: "));
  EXPECT_EQ(ReceiveAll(silent), "");
  EXPECT_EQ(ReceiveAll(half), "");
  // One that does not take its answer: what comes ends before its length.
  constexpr size_t kSize = 64 << 20;
  const auto large =
      StartServer([](const Request&) { return Answer{.body = std::string(kSize, 'a')}; },
                  {.most_connections = 1, .patience = std::chrono::milliseconds(50)});
  const Fd idle = ConnectTo(large->port());
  ASSERT_TRUE(Send(idle, "GET / HTTP/1.1\r\n\r\n"));
  // The only place is free once it was dropped.
  std::string next;
  while (next.empty()) next = Exchange(large->port(), "HEAD / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(next, StartsWith("HTTP/1.0 200 "));
  EXPECT_LT(ReceiveAll(idle).size(), kSize);
}

TEST(HttpServer, TheHandlerLearnsThatNobodyWaits) {
  std::promise<void> asked;
  std::promise<void> went;
  const auto server = StartServer([&](const Request& request) {
    EXPECT_FALSE(request.has_gone());
    asked.set_value();
    went.get_future().wait();
    while (!request.has_gone()) std::this_thread::yield();
    return Answer{};
  });
  {
    const Fd client = ConnectTo(server->port());
    ASSERT_TRUE(Send(client, "GET / HTTP/1.1\r\n\r\n"));
    asked.get_future().wait();
  }
  went.set_value();
}

TEST(HttpServer, ItsEndEndsAHandlerThatAsks) {
  std::promise<void> asked;
  auto server = StartServer([&](const Request& request) {
    asked.set_value();
    while (!request.has_gone()) std::this_thread::yield();
    return Answer{};
  });
  const Fd client = ConnectTo(server->port());
  ASSERT_TRUE(Send(client, "GET / HTTP/1.1\r\n\r\n"));
  asked.get_future().wait();
  server.reset();
}

TEST(HttpServer, AnEndpointThatIsNoneIsTold) {
  const auto server = StartServer();
  const auto error = [](const Endpoint& endpoint) {
    return std::string(Server::Start(endpoint, Echo).status().message());
  };
  EXPECT_THAT(error({.host = "localhost", .port = server->port()}),
              AllOf(StartsWith("tcp:localhost:" + std::to_string(server->port())),
                    HasSubstr("Address already in use")));
  EXPECT_THAT(error({.host = "example.org"}), HasSubstr("'example.org' is not an address"));
  // Of no interface of this machine (RFC 5737).
  EXPECT_THAT(error({.host = "192.0.2.1"}), HasSubstr("tcp:192.0.2.1:0 cannot be listened on"));
}

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

#include "monitor/stream/nats/uplink_way.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/monitor/stream/protocol/chunk.h"

namespace vcpulse::stream {
namespace {

using std::chrono::milliseconds;

// A server that takes connections and says nothing: connecting to it takes as long as it may.
class SilentServer {
 public:
  SilentServer() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(listen(socket_, 5), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    url_ = absl::StrCat("nats://127.0.0.1:", ntohs(address.sin_port));
  }
  ~SilentServer() { close(socket_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  const std::string& url() const { return url_; }

 private:
  const int socket_;
  std::string url_;
};

TEST(NatsUplink, KeepsChunksWhileItConnects) {
  const SilentServer server;
  const std::vector<std::string> urls = {server.url()};
  NatsUplinkOptions nats;
  nats.server.urls = urls;
  Uplink::Options options;
  options.identity = {.agent_id = "a", .host_name = "a", .boot_id = "a"};
  options.way_name = server.url();
  options.say = [](const std::string&) {};
  options.make_way = WayToNats(nats);
  auto uplink = Uplink::Start(options);
  ASSERT_TRUE(uplink.ok()) << uplink.status();
  std::this_thread::sleep_for(milliseconds(100));  // it connects by now
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE((*uplink)->Offer(MakeChunk(StreamNumber(1), i, i).bytes));
  }
  while ((*uplink)->stats().waiting_chunks < 10 || (*uplink)->stats().queue_bytes > 0) {
    ASSERT_LT(std::chrono::steady_clock::now() - begin, milliseconds(1'000));
    std::this_thread::sleep_for(milliseconds(5));
  }
  // It did connect all the time.
  EXPECT_EQ((*uplink)->stats().last_error, "");
  (*uplink)->ReloadCredentials();
}

}  // namespace
}  // namespace vcpulse::stream

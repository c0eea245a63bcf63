// What one connection holds of the collector's memory.
#include "monitor/stream/net/peer.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <vector>

#include "kvm/base/fd.h"
#include "monitor/stream/protocol/frame.h"
#include "tests/unit/monitor/stream/net/indifferent_owner.h"

namespace vcpulse::stream {
namespace {

class PeerTest : public testing::Test {
 protected:
  PeerTest() {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    far_ = Fd(pair[0]);
    PlainSocket socket(context_);
    socket.assign(boost::asio::generic::stream_protocol(AF_UNIX, 0), pair[1]);
    peer_ = std::make_shared<Peer>(
        context_, 1, Arrival{.channel = NewPlainChannel(std::move(socket)), .from = "", .uid = {}},
        SessionLimits(), owner_, std::make_shared<Buffered>());
    v1::Hello hello;
    hello.set_major(kMajor);
    hello.set_min_major(kMinMajor);
    hello.set_agent_id("agent");
    hello.set_stream_id("0123456789abcdef");
    hello.set_first_sequence(1);
    hello.set_next_sequence(1);
    AppendFrame(FrameType::kHello, hello, bytes_);
    peer_->Start();
    Send();
  }
  ~PeerTest() override { peer_->Close(); }
  PeerTest(const PeerTest&) = delete;
  PeerTest& operator=(const PeerTest&) = delete;

  // So many bytes at least of frames that are to be answered by nothing.
  void SendPings(size_t bytes) {
    v1::Ping ping;
    ping.set_is_answer(true);
    do {
      AppendFrame(FrameType::kPing, ping, bytes_);
    } while (bytes_.size() < bytes);
    Send();
  }

  boost::asio::io_context context_;
  IndifferentOwner owner_;
  std::shared_ptr<Peer> peer_;

 private:
  void Send() {
    ASSERT_EQ(send(far_.get(), bytes_.data(), bytes_.size(), MSG_NOSIGNAL), bytes_.size());
    bytes_.clear();
    context_.restart();
    context_.poll();
    ASSERT_FALSE(peer_->ended());
  }

  Fd far_;
  std::vector<uint8_t> bytes_;
};

TEST_F(PeerTest, MuchIsReadAtOnceAndNothingIsKept) {
  const size_t idle_bytes = peer_->memory();
  owner_.reads = 0;
  SendPings(48 << 10);
  EXPECT_EQ(owner_.reads, 1);
  EXPECT_LE(peer_->memory(), idle_bytes);
}

}  // namespace
}  // namespace vcpulse::stream

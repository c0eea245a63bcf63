#include <fcntl.h>

#include <boost/asio/write.hpp>
#include <utility>

#include "monitor/stream/net/channel.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;

class PlainChannel final : public Channel {
 public:
  explicit PlainChannel(PlainSocket socket) : socket_(std::move(socket)) {
    KeepFromChildren(socket_.native_handle());
  }

  void Handshake(std::function<void(const ErrorCode&)> done) override { done({}); }
  void ReadSome(asio::mutable_buffer buffer, Done done) override {
    socket_.async_read_some(buffer, KeepAlive(std::move(done)));
  }
  void WriteAll(asio::const_buffer bytes, Done done) override {
    asio::async_write(socket_, bytes, KeepAlive(std::move(done)));
  }
  void EndWriting() override {
    ErrorCode ignored;
    socket_.shutdown(PlainSocket::shutdown_send, ignored);
  }
  void Close() override {
    ErrorCode ignored;
    socket_.close(ignored);
  }
  std::optional<std::vector<std::string>> PeerNames() const override { return std::nullopt; }
  std::string Describe(const ErrorCode& error) const override { return error.message(); }
  int descriptor() override { return socket_.native_handle(); }

 private:
  Done KeepAlive(Done done) {
    return [self = shared_from_this(), done = std::move(done)](
               const ErrorCode& error, size_t bytes) { done(error, bytes); };
  }

  PlainSocket socket_;
};

}  // namespace

void KeepFromChildren(int descriptor) { ::fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

std::shared_ptr<Channel> NewPlainChannel(PlainSocket socket) {
  return std::make_shared<PlainChannel>(std::move(socket));
}

}  // namespace vcpulse::stream

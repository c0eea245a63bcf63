#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kvm/base/fd.h"
#include "monitor/stream/protocol/frame.h"
#include "monitor/stream/protocol/hello.h"
#include "monitor/timeline/chunk_header.h"
#include "vcpulse/v1/stream.pb.h"

namespace vcpulse::stream {

// A peer made by hand, on a unix socket.
class RawPeer {
 public:
  explicit RawPeer(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    connected_ = connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }

  bool connected() const { return connected_; }

  void Send(std::span<const uint8_t> bytes) const {
    static_cast<void>(send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  void SendHello(const timeline::StreamId& stream, const std::string& agent_id = "raw",
                 uint32_t major = kMajor, uint32_t min_major = kMinMajor) const {
    v1::Hello hello;
    hello.set_major(major);
    hello.set_min_major(min_major);
    hello.set_agent_id(agent_id);
    hello.set_stream_id(std::string(stream.begin(), stream.end()));
    hello.set_first_sequence(1);
    hello.set_next_sequence(1000);
    SendHello(hello);
  }
  void SendHelloOfFollower(const std::string& agent_id = "follower") const {
    v1::Hello hello;
    hello.set_major(kMajor);
    hello.set_min_major(kMinMajor);
    hello.set_agent_id(agent_id);
    hello.set_role(v1::Hello::ROLE_FOLLOWER);
    SendHello(hello);
  }
  void SendHello(const v1::Hello& hello) const {
    std::vector<uint8_t> bytes;
    AppendFrame(FrameType::kHello, hello, bytes);
    Send(bytes);
  }

  // Sends for as long as the other side takes it; how many bytes.
  size_t SendUntilFull(std::span<const uint8_t> bytes, size_t most) const {
    size_t sent = 0;
    size_t at = 0;
    while (sent < most) {
      pollfd waits{.fd = fd_.get(), .events = POLLOUT, .revents = 0};
      if (poll(&waits, 1, 500) != 1) break;
      const ssize_t got =
          send(fd_.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (got <= 0) break;
      sent += static_cast<size_t>(got);
      at = (at + static_cast<size_t>(got)) % bytes.size();
    }
    return sent;
  }

  // The next frame, or the end: its type, 0 at the end. `error` gets what an Error says.
  FrameType Next() {
    while (true) {
      const auto frame = frames_.Next();
      if (frame.ok() && frame->has_value()) {
        if ((*frame)->type == static_cast<uint8_t>(FrameType::kError)) {
          error.ParseFromArray((*frame)->payload.data(),
                               static_cast<int>((*frame)->payload.size()));
        }
        return static_cast<FrameType>((*frame)->type);
      }
      std::vector<uint8_t> buffer(4096);
      pollfd waits{.fd = fd_.get(), .events = POLLIN, .revents = 0};
      if (poll(&waits, 1, 20'000) != 1) return kNothing;
      const ssize_t got = recv(fd_.get(), buffer.data(), buffer.size(), 0);
      if (got <= 0) return kNothing;
      frames_.Feed(std::span(buffer).first(static_cast<size_t>(got)));
    }
  }
  // Reads to the end; whether it came, and not silence.
  bool Ends() {
    while (Next() != kNothing) {
    }
    char byte = 0;
    return recv(fd_.get(), &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
  }

  static constexpr auto kNothing = static_cast<FrameType>(0);
  v1::Error error;

 private:
  Fd fd_;
  bool connected_ = false;
  FrameReader frames_{kMaxFrameBytes};
};

}  // namespace vcpulse::stream

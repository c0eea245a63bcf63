#pragma once

// The two ends of a control socket as strangers would be.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "kvm/base/fd.h"
#include "monitor/control/request.h"
#include "monitor/control/response.h"

namespace vcpulse::control {

inline constexpr int kLong_ms = 30'000;  // never reached

inline sockaddr_un AddressOfPath(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

// A socket that is bound to `path`, and listens where `backlog` is not negative.
inline Fd Bound(const std::string& path, int backlog) {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = AddressOfPath(path);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  if (backlog >= 0) {
    EXPECT_EQ(listen(fd.get(), backlog), 0);
  }
  return fd;
}

// A client of few manners.
class RawClient {
 public:
  explicit RawClient(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    const sockaddr_un address = AddressOfPath(path);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }

  // False where the server has gone.
  bool Send(std::string_view text) {
    return send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }

  // The next line; nothing where the server closed the connection.
  std::optional<std::string> Line() {
    while (true) {
      if (auto line = lines_.Next()) return line->text;
      pollfd wanted{fd_.get(), POLLIN, 0};
      char buffer[4096];
      if (poll(&wanted, 1, kLong_ms) <= 0) ADD_FAILURE() << "nothing came";
      const ssize_t size = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      if (size <= 0) return std::nullopt;
      lines_.Receive({buffer, static_cast<size_t>(size)});
    }
  }

  void Close() { fd_ = Fd(); }

 private:
  Fd fd_;
  LineSplitter lines_{kLongestAnswer_bytes};
};

}  // namespace vcpulse::control

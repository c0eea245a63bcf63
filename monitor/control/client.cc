#include "monitor/control/client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kvm/base/clock.h"
#include "kvm/base/fd.h"
#include "kvm/base/text.h"
#include "monitor/control/listening_socket.h"

namespace vcpulse::control {
namespace {

constexpr absl::Duration kShortestTimeout = absl::Milliseconds(1);
constexpr absl::Duration kLongestTimeout = absl::Hours(24);
constexpr absl::Duration kConnectRetry = absl::Milliseconds(10);

// Marks what failed before anything was sent.
constexpr char kNotAskedUrl[] = "vcpulse/not-asked";

// One exchange with one recording.
class Exchange {
 public:
  Exchange(const std::string& path, absl::Duration timeout)
      : path_(path), timeout_(timeout), deadline_(timeout) {}

  absl::StatusOr<std::string> Run(const sockaddr_un& address, std::string_view request) {
    if (absl::Status status = Connect(address); !status.ok()) {
      status.SetPayload(kNotAskedUrl, absl::Cord());
      return status;
    }
    if (absl::Status status = Send(request); !status.ok()) return status;
    return ReadLine();
  }

 private:
  absl::Status At(absl::StatusCode code, const std::string& what) const {
    return absl::Status(code, absl::StrCat("control socket ", QuotedPath(path_), ": ", what));
  }

  absl::Status Connect(const sockaddr_un& address) {
    socket_ = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_.valid()) return absl::ErrnoToStatus(errno, "no unix socket can be made");
    while (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
           0) {
      const int error = errno;
      // More clients wait than the server has taken: there is nothing that poll(2) would wait for.
      if (error != EAGAIN && error != EINTR) return ConnectFailed(error);
      if (deadline_.over()) return TimedOut();
      absl::SleepFor(kConnectRetry);
    }
    return absl::OkStatus();
  }

  absl::Status ConnectFailed(int error) const {
    const std::string start =
        absl::StrCat("; start it with `vcpulse record --control ", QuotedPath(path_), "`");
    switch (error) {
      case ENOENT:
      case ENOTDIR:
        return At(absl::StatusCode::kNotFound, absl::StrCat("no recording listens here", start));
      case ECONNREFUSED: {
        struct stat info{};
        if (stat(path_.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
          return At(absl::StatusCode::kUnavailable, "what lies here is not a socket");
        }
        return At(absl::StatusCode::kUnavailable,
                  absl::StrCat("the recording that listened here has ended", start));
      }
      case EACCES:
      case EPERM:
        return At(absl::StatusCode::kPermissionDenied,
                  "not permitted: it is for root and the user whose recording it is");
      default:
        return At(absl::StatusCode::kUnavailable,
                  absl::StrCat("cannot connect: ", std::strerror(error)));
    }
  }

  // Waits until the socket is ready; DeadlineExceeded where the time is over before.
  absl::Status WaitFor(short events) const {  // NOLINT(google-runtime-int): poll(2)'s own type
    while (true) {
      const absl::Duration left = deadline_.left();
      if (left <= absl::ZeroDuration()) return TimedOut();
      pollfd wanted{socket_.get(), events, 0};
      const auto wait_ms =
          static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
      const int ready = poll(&wanted, 1, wait_ms);
      if (ready > 0) return absl::OkStatus();
      if (ready < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
    }
  }

  absl::Status Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<size_t>(sent));
      } else if (errno == EAGAIN) {
        if (absl::Status status = WaitFor(POLLOUT); !status.ok()) return status;
      } else if (errno == EPIPE || errno == ECONNRESET) {
        return absl::OkStatus();  // it was turned away: the answer says why
      } else if (errno != EINTR) {
        return Ended();
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ReadLine() {
    std::string line;
    std::array<char, 4096> buffer{};
    while (true) {
      if (absl::Status status = WaitFor(POLLIN); !status.ok()) return status;
      const ssize_t size = recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (size <= 0) return Ended();
      const std::string_view piece(buffer.data(), static_cast<size_t>(size));
      const size_t end = piece.find('\n');
      line += piece.substr(0, end);
      if (end != std::string_view::npos) return line;
      if (line.size() > kLongestAnswer_bytes) {
        return At(absl::StatusCode::kDataLoss, "the answer is too long to be a recording's");
      }
    }
  }

  absl::Status TimedOut() const {
    return At(absl::StatusCode::kDeadlineExceeded,
              absl::StrCat("no answer within ", absl::FormatDuration(timeout_),
                           ": the recording is busy, or stopped by a signal, and may still do what "
                           "was asked (--timeout waits longer)"));
  }

  absl::Status Ended() const {
    return At(absl::StatusCode::kUnavailable, "the recording ended before it answered");
  }

  const std::string& path_;
  absl::Duration timeout_;
  Deadline deadline_;
  Fd socket_;
};

}  // namespace

bool NobodyWasAsked(const absl::Status& status) {
  return status.GetPayload(kNotAskedUrl).has_value();
}

absl::StatusOr<Answer> Ask(const std::string& path, const Request& request,
                           absl::Duration timeout) {
  const absl::StatusOr<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.status();
  Exchange exchange(path, std::clamp(timeout, kShortestTimeout, kLongestTimeout));
  absl::StatusOr<std::string> line = exchange.Run(*address, RequestLine(request));
  if (!line.ok()) return line.status();
  absl::StatusOr<Response> response = ParseResponse(*line);
  if (!response.ok()) {
    return absl::DataLossError(
        absl::StrCat("control socket ", QuotedPath(path),
                     ": the answer makes no sense: ", response.status().message()));
  }
  return Answer{*std::move(line), *std::move(response)};
}

}  // namespace vcpulse::control

#include "kvm/discovery/qmp_client.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <boost/asio.hpp>
#include <chrono>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::kvm {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

// "QMP at unix:/x: WHAT", one line.
absl::Status At(const std::string& address, absl::StatusCode code, const std::string& what) {
  return absl::Status(code, absl::StrCat("QMP at ", absl::Utf8SafeCEscape(address), ": ", what));
}

std::optional<pid_t> PeerPid(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  // 0: the peer lives outside our PID namespace.
  return peer.pid > 0 ? std::optional(peer.pid) : std::nullopt;
}

// One exchange over any stream socket. Every step is an asynchronous operation that `Await` runs
// until it ends or the deadline passes.
template <typename Protocol>
class Exchange {
 public:
  Exchange(const std::string& address, absl::Duration timeout, Clock::time_point deadline,
           QmpProtocol protocol)
      : address_(address),
        socket_(io_),
        timeout_(timeout),
        deadline_(deadline),
        protocol_(std::move(protocol)) {}

  absl::StatusOr<QmpReply> Run(const typename Protocol::endpoint& endpoint) {
    error_code error;
    const bool connected = Await([&](auto done) { socket_.async_connect(endpoint, done); }, error);
    if (!connected) return TimedOut();
    if (error) {
      return At(address_, absl::StatusCode::kUnavailable,
                absl::StrCat("cannot connect: ", error.message(),
                             "; is the VM running, with a QMP server at this address?"));
    }
    while (!protocol_.done()) {
      absl::Status status = Step();
      if (!status.ok()) return status;
    }
    QmpReply reply{protocol_.answers(), std::nullopt};
    if constexpr (std::is_same_v<Protocol, asio::local::stream_protocol>) {
      reply.server_pid = PeerPid(socket_.native_handle());
    }
    return reply;
  }

 private:
  // Sends what is to be sent, then takes one read.
  absl::Status Step() {
    error_code error;
    const std::string output = protocol_.TakeOutput();
    if (!output.empty()) {
      const bool sent = Await(
          [&](auto done) {
            asio::async_write(socket_, asio::buffer(output),
                              [done](error_code result, size_t) { done(result); });
          },
          error);
      if (!sent) return TimedOut();
      if (error) return Closed(error);
    }
    size_t received = 0;
    const bool read = Await(
        [&](auto done) {
          socket_.async_read_some(asio::buffer(buffer_),
                                  [done, &received](error_code result, size_t size) {
                                    received = size;
                                    done(result);
                                  });
        },
        error);
    if (!read) return TimedOut();
    if (error) return Closed(error);
    const absl::Status status = protocol_.Receive({buffer_.data(), received});
    if (!status.ok()) return At(address_, status.code(), std::string(status.message()));
    return absl::OkStatus();
  }

  // Starts an operation and runs it to its end: true, with its result in `error`. False where the
  // deadline came first; the operation is then cancelled, with nothing of it left behind.
  template <typename Start>
  bool Await(Start start, error_code& error) {
    bool ended = false;
    start([&](error_code result) {
      ended = true;
      error = result;
    });
    io_.restart();
    io_.run_until(deadline_);
    if (ended) return true;
    error_code ignored;
    socket_.close(ignored);
    io_.restart();
    io_.run();
    return false;
  }

  absl::Status TimedOut() const {
    const std::string limit = absl::FormatDuration(timeout_);
    return At(address_, absl::StatusCode::kUnavailable,
              protocol_.greeted()
                  ? absl::StrCat("the answers did not come within ", limit)
                  : absl::StrCat("no greeting within ", limit,
                                 "; another client may hold it (QMP serves one at a time): close "
                                 "that one, or give QEMU a second -qmp socket"));
  }

  absl::Status Closed(error_code error) const {
    const bool ended = error == asio::error::eof;
    return At(address_, absl::StatusCode::kUnavailable,
              absl::StrCat("the connection ended before the answers came",
                           ended ? std::string() : absl::StrCat(" (", error.message(), ")"),
                           "; has the VM ended?"));
  }

  std::string address_;
  asio::io_context io_{1};
  typename Protocol::socket socket_;
  absl::Duration timeout_;
  Clock::time_point deadline_;
  QmpProtocol protocol_;
  std::array<char, 16384> buffer_;
};

absl::StatusOr<QmpReply> QueryUnix(const std::string& address, const std::string& path,
                                   absl::Duration timeout, Clock::time_point deadline,
                                   const QmpProtocol& protocol) {
  Exchange<asio::local::stream_protocol> exchange(address, timeout, deadline, protocol);
  return exchange.Run(asio::local::stream_protocol::endpoint(path));
}

absl::StatusOr<QmpReply> QueryTcp(const std::string& address, const QmpAddress& where,
                                  absl::Duration timeout, Clock::time_point deadline,
                                  const QmpProtocol& protocol) {
  using asio::ip::tcp;
  error_code error;
  asio::io_context resolver_io{1};
  tcp::resolver resolver(resolver_io);
  const auto endpoints =
      resolver.resolve(where.host, where.port, tcp::resolver::numeric_service, error);
  if (error || endpoints.empty()) {
    return At(address, absl::StatusCode::kUnavailable,
              absl::StrCat("cannot find this host: ", error.message()));
  }
  // `localhost` has two addresses, of which QEMU may listen on one alone.
  absl::StatusOr<QmpReply> reply = absl::UnavailableError("");
  for (const auto& endpoint : endpoints) {
    Exchange<tcp> exchange(address, timeout, deadline, protocol);
    reply = exchange.Run(endpoint.endpoint());
    if (reply.ok() || !absl::IsUnavailable(reply.status())) return reply;
  }
  return reply;
}

}  // namespace

absl::StatusOr<QmpAddress> ParseQmpAddress(const std::string& text) {
  const auto bad = [&text](const char* why) {
    return absl::InvalidArgumentError(absl::StrCat("QMP address '", absl::Utf8SafeCEscape(text),
                                                   "': ", why,
                                                   "; known are unix:PATH and tcp:HOST:PORT"));
  };
  QmpAddress address;
  if (text.starts_with("unix:") ||
      (text.find('/') != std::string::npos && !text.starts_with("tcp:"))) {
    address.path = text.starts_with("unix:") ? text.substr(5) : text;
    if (address.path.empty()) return bad("no path");
    if (address.path.find('\0') != std::string::npos) return bad("a path has no NUL");
    if (address.path.size() >= sizeof(sockaddr_un::sun_path)) {
      return bad(
          "the path is longer than the 107 bytes that a unix socket may have (a shorter "
          "symbolic link to its folder helps)");
    }
    return address;
  }
  if (!text.starts_with("tcp:")) return bad("it must begin with unix: or tcp:");
  const size_t colon = text.rfind(':');
  if (colon <= 4) return bad("no host or no port");
  address.host = text.substr(4, colon - 4);
  address.port = text.substr(colon + 1);
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
  } else if (address.host.find(':') != std::string::npos) {
    return bad("an IPv6 address goes into brackets");
  }
  const auto port = ParseNumber<uint16_t>(address.port);
  if (!port || *port == 0) return bad("the port is a number from 1 to 65535");
  if (address.host.empty()) return bad("no host");
  return address;
}

absl::StatusOr<QmpReply> QueryQmp(const std::string& address, absl::Duration timeout,
                                  QmpQuestions questions, const QmpCodePlaces& code) {
  const absl::StatusOr<QmpAddress> where = ParseQmpAddress(address);
  if (!where.ok()) return where.status();
  // A time-out beyond a day is as good as none and would overflow the clock.
  const absl::Duration bounded = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24));
  const Clock::time_point deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                        absl::ToChronoNanoseconds(bounded));
  const QmpProtocol protocol(questions, code);
  if (!where->path.empty()) return QueryUnix(address, where->path, timeout, deadline, protocol);
  return QueryTcp(address, *where, timeout, deadline, protocol);
}

}  // namespace vcpulse::kvm

#include "monitor/control/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/control/connection.h"
#include "monitor/control/listening_socket.h"

namespace vcpulse::control {
namespace {

namespace asio = boost::asio;
using Protocol = asio::local::stream_protocol;
using boost::system::error_code;

// Without descriptors, for example.
constexpr std::chrono::milliseconds kAcceptRetry{100};

// The mode of the socket says so already; but a mode can be changed, and a descriptor passed on.
bool IsPermitted(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == geteuid();
}

}  // namespace

class Server::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& context, ListeningSocket listening, const Options& options,
       Handler handler)
      : listening_(std::move(listening)),
        acceptor_(context, Protocol(), listening_.ReleaseFd()),
        retry_(context),
        options_(options),
        handler_(std::move(handler)) {}

  void Accept() {
    acceptor_.async_accept(
        [weak = weak_from_this()](const error_code& error, Protocol::socket socket) {
          const std::shared_ptr<Impl> self = weak.lock();
          if (self == nullptr || error == asio::error::operation_aborted) return;
          if (error) return self->AcceptLater();
          self->Take(std::move(socket));
          self->Accept();
        });
  }

  void Close() {
    error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
    for (const auto& [key, connection] : connections_) connection->Close();
    connections_.clear();
  }

 private:
  void AcceptLater() {
    retry_.expires_after(kAcceptRetry);
    retry_.async_wait([weak = weak_from_this()](const error_code& error) {
      const std::shared_ptr<Impl> self = weak.lock();
      if (self != nullptr && !error) self->Accept();
    });
  }

  void Take(Protocol::socket socket) {
    const bool permitted = IsPermitted(socket.native_handle());
    const auto connection = std::make_shared<Connection>(
        std::move(socket), options_, handler_, [weak = weak_from_this()](Connection* ended) {
          if (const std::shared_ptr<Impl> self = weak.lock()) self->connections_.erase(ended);
        });
    if (!permitted) return connection->TurnAway("not permitted: this is another user's recording");
    if (connections_.size() >= kMostConnections) {
      return connection->TurnAway(
          absl::StrCat("too many connections: at most ", kMostConnections, " at once"));
    }
    connections_.emplace(connection.get(), connection);
    connection->Start();
  }

  ListeningSocket listening_;  // outlives the acceptor, which has its descriptor
  Protocol::acceptor acceptor_;
  asio::steady_timer retry_;
  Options options_;
  Handler handler_;
  std::map<Connection*, std::shared_ptr<Connection>> connections_;
};

Server::Server(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() { impl_->Close(); }

absl::StatusOr<std::unique_ptr<Server>> Server::Listen(asio::io_context& context,
                                                       const Options& options, Handler handler) {
  absl::StatusOr<ListeningSocket> listening = ListeningSocket::Open(options.path);
  if (!listening.ok()) return listening.status();
  auto impl = std::make_shared<Impl>(context, *std::move(listening), options, std::move(handler));
  impl->Accept();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

}  // namespace vcpulse::control

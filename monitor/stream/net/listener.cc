#include <sys/socket.h>
#include <sys/stat.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/control/listening_socket.h"
#include "monitor/stream/net/sockets.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Local = asio::local::stream_protocol;

// Without descriptors, for example.
constexpr std::chrono::milliseconds kAcceptRetry{100};

// Accepts one after the other for as long as its owner lives.
template <typename Protocol>
class Accepting : public std::enable_shared_from_this<Accepting<Protocol>> {
 public:
  using Socket = typename Protocol::socket;
  using Taken = std::function<void(Socket)>;

  Accepting(asio::io_context& context, Taken taken)
      : acceptor_(context), retry_(context), taken_(std::move(taken)) {}

  typename Protocol::acceptor& acceptor() { return acceptor_; }

  void Accept() {
    acceptor_.async_accept(
        [self = this->shared_from_this()](const ErrorCode& error, Socket socket) {
          if (error == asio::error::operation_aborted || self->taken_ == nullptr) return;
          if (error) return self->AcceptLater();
          self->taken_(std::move(socket));
          self->Accept();
        });
  }

  void Close() {
    taken_ = nullptr;
    ErrorCode ignored;
    acceptor_.close(ignored);
    retry_.cancel();
  }

 private:
  void AcceptLater() {
    retry_.expires_after(kAcceptRetry);
    retry_.async_wait([self = this->shared_from_this()](const ErrorCode& error) {
      if (!error && self->taken_ != nullptr) self->Accept();
    });
  }

  typename Protocol::acceptor acceptor_;
  asio::steady_timer retry_;
  Taken taken_;
};

class LocalListener final : public Listener {
 public:
  LocalListener(asio::io_context& context, Options options, control::ListeningSocket socket)
      : options_(std::move(options)),
        socket_(std::move(socket)),
        accepting_(std::make_shared<Accepting<Local>>(
            context, [this](Local::socket peer) { Take(std::move(peer)); })) {
    accepting_->acceptor().assign(Local(), socket_.ReleaseFd());
    accepting_->Accept();
  }
  ~LocalListener() override { accepting_->Close(); }
  LocalListener(const LocalListener&) = delete;
  LocalListener& operator=(const LocalListener&) = delete;

  Address address() const override { return options_.address; }

 private:
  void Take(Local::socket peer) {
    ucred who{};
    socklen_t size = sizeof(who);
    Arrival arrival;
    if (getsockopt(peer.native_handle(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return;
    arrival.uid = who.uid;
    arrival.from = absl::StrCat("unix, user ", who.uid, ", PID ", who.pid);
    arrival.channel = NewPlainChannel(PlainSocket(std::move(peer)));
    options_.arrived(std::move(arrival));
  }

  Options options_;
  control::ListeningSocket socket_;  // its path goes with it
  std::shared_ptr<Accepting<Local>> accepting_;
};

class TcpListener final : public Listener {
 public:
  TcpListener(asio::io_context& context, Options options)
      : options_(std::move(options)),
        accepting_(std::make_shared<Accepting<tcp>>(
            context, [this](tcp::socket peer) { Take(std::move(peer)); })) {}
  ~TcpListener() override { accepting_->Close(); }
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  ErrorCode Open(const tcp::endpoint& endpoint) {
    tcp::acceptor& acceptor = accepting_->acceptor();
    ErrorCode error;
    acceptor.open(endpoint.protocol(), error);
    if (!error) KeepFromChildren(acceptor.native_handle());
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (error) return error;
    options_.address.port = acceptor.local_endpoint().port();
    accepting_->Accept();
    return {};
  }

  Address address() const override { return options_.address; }

 private:
  void Take(tcp::socket peer) {
    ErrorCode error;
    peer.set_option(tcp::no_delay(true), error);
    const tcp::endpoint from = peer.remote_endpoint(error);
    if (error) return;  // gone already
    const bool is_tls = options_.address.kind == Address::Kind::kTls;
    Arrival arrival{
        .channel = {},
        .from = absl::StrCat(is_tls ? "tls " : "tcp ", ToText({.kind = Address::Kind::kTcp,
                                                               .host = from.address().to_string(),
                                                               .port = from.port()})
                                                           .substr(4)),
        .uid = std::nullopt};
    arrival.channel = is_tls ? NewTlsChannel(std::move(peer), options_.tls(), TlsRole::kServer, "")
                             : NewPlainChannel(PlainSocket(std::move(peer)));
    options_.arrived(std::move(arrival));
  }

  Options options_;
  std::shared_ptr<Accepting<tcp>> accepting_;
};

absl::StatusOr<std::unique_ptr<Listener>> ListenLocally(asio::io_context& context,
                                                        Listener::Options options) {
  using Access = control::ListeningSocket::Access;
  // With kEveryone SO_PEERCRED alone says who may talk.
  auto socket = control::ListeningSocket::Open(
      options.address.path, options.others_may_connect ? Access::kEveryone : Access::kOwner);
  if (!socket.ok()) return socket.status();
  return std::make_unique<LocalListener>(context, std::move(options), *std::move(socket));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Listen(asio::io_context& context,
                                                           Options options) {
  if (options.address.kind == Address::Kind::kUnix) {
    return ListenLocally(context, std::move(options));
  }
  const std::string text = ToText(options.address);
  tcp::resolver resolver(context);
  ErrorCode error;
  const auto found =
      resolver.resolve(options.address.host, std::to_string(options.address.port),
                       tcp::resolver::numeric_service | tcp::resolver::passive, error);
  if (!error && found.empty()) error = asio::error::host_not_found;
  auto listener = std::make_unique<TcpListener>(context, std::move(options));
  if (!error) error = listener->Open(found.begin()->endpoint());
  if (!error) return listener;
  return absl::UnavailableError(absl::StrCat(text, " cannot be listened on: ", error.message(),
                                             " (port 0 takes a free one)"));
}

}  // namespace vcpulse::stream

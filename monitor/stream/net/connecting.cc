#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/stream/net/sockets.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Local = asio::local::stream_protocol;

class ConnectingOne final : public Connecting, public std::enable_shared_from_this<ConnectingOne> {
 public:
  using Done = std::function<void(absl::StatusOr<std::shared_ptr<Channel>>)>;

  ConnectingOne(asio::io_context& context, Address address, std::shared_ptr<TlsContext> tls,
                Done done)
      : address_(std::move(address)),
        tls_(std::move(tls)),
        done_(std::move(done)),
        resolver_(context),
        tcp_(context),
        local_(context) {}

  void Begin() {
    if (address_.kind == Address::Kind::kUnix) return ConnectLocal();
    resolver_.async_resolve(
        address_.host, std::to_string(address_.port), tcp::resolver::numeric_service,
        [self = shared_from_this()](const ErrorCode& error, const tcp::resolver::results_type& to) {
          if (error) return self->Fail(error);
          self->ConnectTcp(to);
        });
  }

  void Cancel() override {
    done_ = nullptr;
    resolver_.cancel();
    ErrorCode ignored;
    tcp_.close(ignored);
    local_.close(ignored);
  }

 private:
  void ConnectLocal() {
    local_.async_connect(Local::endpoint(address_.path),
                         [self = shared_from_this()](const ErrorCode& error) {
                           if (error) return self->Fail(error);
                           self->Succeed(NewPlainChannel(PlainSocket(std::move(self->local_))));
                         });
  }

  void ConnectTcp(const tcp::resolver::results_type& to) {
    if (done_ == nullptr) return;
    asio::async_connect(tcp_, to,
                        [self = shared_from_this()](const ErrorCode& error, const tcp::endpoint&) {
                          if (error) return self->Fail(error);
                          self->SucceedTcp();
                        });
  }

  void SucceedTcp() {
    ErrorCode ignored;
    tcp_.set_option(tcp::no_delay(true), ignored);
    if (tls_ == nullptr) return Succeed(NewPlainChannel(PlainSocket(std::move(tcp_))));
    Succeed(NewTlsChannel(std::move(tcp_), std::move(tls_), TlsRole::kClient, address_.host));
  }

  void Succeed(std::shared_ptr<Channel> channel) {
    if (Done done = std::exchange(done_, nullptr)) done(std::move(channel));
  }

  void Fail(const ErrorCode& error) {
    if (Done done = std::exchange(done_, nullptr)) done(absl::UnavailableError(error.message()));
  }

  Address address_;
  std::shared_ptr<TlsContext> tls_;
  Done done_;
  tcp::resolver resolver_;
  tcp::socket tcp_;
  Local::socket local_;
};

}  // namespace

absl::Status CheckSecure(const Address& address, bool allow_insecure) {
  if (address.kind != Address::Kind::kTcp || allow_insecure || IsLoopback(address)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      ToText(address),
      ": plain tcp that leaves this machine can be read and forged by others: use tls:, "
      "or --insecure if the network is yours"));
}

std::shared_ptr<Connecting> Connect(
    asio::io_context& context, const Address& address, std::shared_ptr<TlsContext> tls,
    std::function<void(absl::StatusOr<std::shared_ptr<Channel>>)> done) {
  auto connecting =
      std::make_shared<ConnectingOne>(context, address, std::move(tls), std::move(done));
  connecting->Begin();
  return connecting;
}

}  // namespace vcpulse::stream

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/stream/net/sockets.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Local = asio::local::stream_protocol;

constexpr std::chrono::seconds kDeadline{10};

class Connecting final : public ConnectAttempt, public std::enable_shared_from_this<Connecting> {
 public:
  using Done = std::function<void(absl::StatusOr<std::shared_ptr<Channel>>)>;

  Connecting(asio::io_context& context, Address address, Done done)
      : address_(std::move(address)),
        done_(std::move(done)),
        deadline_(context, kDeadline),
        resolver_(context),
        tcp_(context),
        local_(context) {}

  void Begin(const CredentialFiles& credentials) {
    deadline_.async_wait([self = shared_from_this()](const ErrorCode& error) {
      if (error) return;
      self->End(self->channel_ == nullptr ? absl::DeadlineExceededError("no answer")
                                          : absl::DeadlineExceededError("TLS: no answer"));
    });
    if (address_.kind == Address::Kind::kUnix) return ConnectLocal();
    if (address_.kind == Address::Kind::kTls) {
      auto tls = NewTlsContext(credentials, TlsRole::kClient);
      if (!tls.ok()) {
        return asio::post(deadline_.get_executor(),
                          [self = shared_from_this(), why = tls.status()] { self->End(why); });
      }
      tls_ = *std::move(tls);
    }
    resolver_.async_resolve(
        address_.host, std::to_string(address_.port), tcp::resolver::numeric_service,
        [self = shared_from_this()](const ErrorCode& error, const tcp::resolver::results_type& to) {
          if (error) return self->End(absl::UnavailableError(error.message()));
          if (self->done_) self->ConnectTcp(to);
        });
  }

  void Cancel() override {
    done_ = nullptr;
    End(absl::CancelledError());
  }

 private:
  void ConnectLocal() {
    local_.async_connect(Local::endpoint(address_.path),
                         [self = shared_from_this()](const ErrorCode& error) {
                           if (error) return self->End(absl::UnavailableError(error.message()));
                           self->End(NewPlainChannel(PlainSocket(std::move(self->local_))));
                         });
  }

  void ConnectTcp(const tcp::resolver::results_type& to) {
    asio::async_connect(tcp_, to,
                        [self = shared_from_this()](const ErrorCode& error, const tcp::endpoint&) {
                          if (error) return self->End(absl::UnavailableError(error.message()));
                          if (self->done_) self->Secure();
                        });
  }

  void Secure() {
    ErrorCode ignored;
    tcp_.set_option(tcp::no_delay(true), ignored);
    if (tls_ == nullptr) return End(NewPlainChannel(PlainSocket(std::move(tcp_))));
    channel_ = NewTlsChannel(std::move(tcp_), std::move(tls_), TlsRole::kClient, address_.host);
    channel_->Handshake([self = shared_from_this()](const ErrorCode& error) {
      if (!self->done_) return;
      if (error) {
        const std::string why = self->channel_->Describe(error);
        // Somebody else, or no TLS; any other error is the network's.
        const bool is_tls = error.category() == asio::error::get_ssl_category();
        return self->End(is_tls ? absl::UnauthenticatedError(why) : absl::UnavailableError(why));
      }
      self->End(std::move(self->channel_));
    });
  }

  // Closes what is not handed over.
  void End(absl::StatusOr<std::shared_ptr<Channel>> result) {
    deadline_.cancel();
    resolver_.cancel();
    ErrorCode ignored;
    tcp_.close(ignored);
    local_.close(ignored);
    if (channel_ != nullptr) channel_->Close();
    if (Done done = std::exchange(done_, nullptr)) done(std::move(result));
  }

  Address address_;
  Done done_;  // until it has ended
  asio::steady_timer deadline_;
  tcp::resolver resolver_;
  tcp::socket tcp_;
  Local::socket local_;
  std::shared_ptr<TlsContext> tls_;
  std::shared_ptr<Channel> channel_;  // while hands are shaken
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

std::shared_ptr<ConnectAttempt> Connect(
    asio::io_context& context, const Address& address, const CredentialFiles& credentials,
    std::function<void(absl::StatusOr<std::shared_ptr<Channel>>)> done) {
  auto connecting = std::make_shared<Connecting>(context, address, std::move(done));
  connecting->Begin(credentials);
  return connecting;
}

}  // namespace vcpulse::stream

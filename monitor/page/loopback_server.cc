#include "monitor/page/loopback_server.h"

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace vcpulse::page {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kMostConnections = 32;
constexpr uint32_t kMostHeadBytes = 8 << 10;
constexpr std::chrono::seconds kPatience{30};
constexpr std::chrono::milliseconds kAcceptRetry{100};

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

// What all connections share; outlives them.
struct Serving {
  const Source& source;
  std::vector<std::string> hosts;
  size_t connections = 0;
};

// One client: requests and answers in turns.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Serving& serving)
      : stream_(std::move(socket)), buffer_(kMostHeadBytes), serving_(serving) {
    ++serving_.connections;
  }
  ~Connection() { --serving_.connections; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Read() {
    parser_.emplace();
    parser_->header_limit(kMostHeadBytes);
    parser_->body_limit(0);
    stream_.expires_after(kPatience);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, size_t) {
                       if (!error) return self->Write();
                       self->Close();
                     });
  }

 private:
  void Write() {
    const auto& request = parser_->get();
    const Response answer = Answer({.method = View(request.method_string()),
                                    .target = View(request.target()),
                                    .host = View(request[http::field::host]),
                                    .has_gone = [this] { return HasGone(); }},
                                   serving_.hosts, serving_.source);
    response_ = {};
    response_.version(request.version());
    response_.result(static_cast<unsigned>(answer.status));
    response_.keep_alive(request.keep_alive());
    response_.set(http::field::content_type, answer.content_type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Cross-Origin-Resource-Policy", "same-origin");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("X-Frame-Options", "DENY");
    response_.content_length(answer.body.size());
    if (request.method() != http::verb::head) response_.body() = answer.body;
    serializer_.emplace(response_);
    stream_.expires_after(kPatience);
    const bool head_alone = request.method() == http::verb::head;
    const auto written = [self = shared_from_this()](error_code error, size_t) {
      if (error || !self->response_.keep_alive()) return self->Close();
      self->Read();
    };
    if (head_alone) return http::async_write_header(stream_, *serializer_, written);
    http::async_write(stream_, *serializer_, written);
  }

  // Whether the client has closed the connection: it does not wait for what it asked for.
  bool HasGone() {
    char byte = 0;
    return recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

  void Close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::empty_body>> parser_;
  http::response<http::string_body> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  Serving& serving_;
};

class Acceptor {
 public:
  Acceptor(asio::io_context& context, Serving& serving)
      : acceptor_(context), retry_(context), serving_(serving) {}

  absl::Status Listen(const LoopbackAddress& address) {
    const bool is_v6 = address.host == "::1";
    const tcp::endpoint endpoint(asio::ip::make_address(is_v6 ? "::1" : "127.0.0.1"), address.port);
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    if (!error) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("tcp:", is_v6 ? "[::1]" : address.host, ":", address.port,
                     " cannot be listened on: ", error.message(), " (port 0 takes a free one)"));
  }

  uint16_t port() const { return acceptor_.local_endpoint().port(); }

  void Accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return AcceptLater();  // without descriptors, for example
      // One too many is closed at once.
      if (serving_.connections < kMostConnections) {
        std::make_shared<Connection>(std::move(socket), serving_)->Read();
      }
      Accept();
    });
  }

 private:
  void AcceptLater() {
    retry_.expires_after(kAcceptRetry);
    retry_.async_wait([this](error_code error) {
      if (!error) Accept();
    });
  }

  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  Serving& serving_;
};

}  // namespace

absl::Status ServeOnLoopback(const LoopbackAddress& address, const Source& source,
                             const std::function<absl::Status(const std::string& url)>& listening) {
  Serving serving{.source = source};
  asio::io_context context(1);
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&context](error_code, int) { context.stop(); });
  Acceptor acceptor(context, serving);
  if (absl::Status status = acceptor.Listen(address); !status.ok()) return status;
  serving.hosts = HostsOf(acceptor.port());
  acceptor.Accept();
  absl::Status told = listening(absl::StrCat(
      "http://", address.host == "::1" ? "[::1]" : address.host, ":", acceptor.port(), "/"));
  if (!told.ok()) return told;
  context.run();
  return absl::OkStatus();
}

}  // namespace vcpulse::page

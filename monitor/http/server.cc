#include "monitor/http/server.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <list>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "kvm/base/signals.h"
#include "kvm/base/text.h"

namespace vcpulse::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace wire = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr uint32_t kMostHeadBytes = 8 << 10;
// More than a head: where the buffer is full before the limit is passed, Beast reads nothing more.
constexpr size_t kMostBufferedBytes = 2 * kMostHeadBytes;
constexpr std::chrono::milliseconds kAcceptRetry{100};

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

// No program that is started meanwhile is to have it.
void CloseOnExec(int descriptor) { fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

class Connection;

// What all connections share; outlives them.
struct Serving {
  Handler handler;
  Server::Options options;
  uint16_t port = 0;
  std::list<Connection*> connections;  // those that wait for a request longest first
  std::atomic<bool> ends{false};
};

Answer OnlyGet() { return {.status = 405, .body = "only GET: nothing here can be changed\n"}; }

// Of a request that could not be read; nothing where there was none: the client has gone.
std::optional<Answer> RefusalOf(error_code error) {
  if (error == wire::error::header_limit || error == wire::error::buffer_overflow) {
    return Answer{.status = 431, .body = "the head of this request is too large\n"};
  }
  if (error == wire::error::body_limit) {
    return Answer{.status = 413, .body = "requests have no body here\n"};
  }
  const bool is_gone = error == wire::error::end_of_stream || error == wire::error::partial_message;
  if (is_gone || error.category() != wire::make_error_code(wire::error::bad_method).category()) {
    return std::nullopt;
  }
  return Answer{.status = 400, .body = "this is not an HTTP request\n"};
}

// One client: requests and answers in turns.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Serving& serving)
      : stream_(std::move(socket)), buffer_(kMostBufferedBytes), serving_(serving) {
    CloseOnExec(stream_.socket().native_handle());
    place_ = serving_.connections.insert(serving_.connections.end(), this);
  }
  ~Connection() { serving_.connections.erase(place_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Whether it waits for the client to ask something, and has had its answers.
  bool is_idle() const { return is_idle_; }

  void Read() {
    is_idle_ = true;
    serving_.connections.splice(serving_.connections.end(), serving_.connections, place_);
    parser_.emplace();
    parser_->header_limit(kMostHeadBytes);
    parser_->body_limit(0);
    stream_.expires_after(serving_.options.patience);
    wire::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, size_t) {
                       self->is_idle_ = false;
                       if (!error) return self->Handle();
                       self->Refuse(error);
                     });
  }

  void Close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
  }

 private:
  static bool IsRead(wire::verb method) {
    return method == wire::verb::get || method == wire::verb::head;
  }

  void Refuse(error_code error) {
    std::optional<Answer> refusal = RefusalOf(error);
    if (!refusal) return Close();
    if (refusal->status == 413 && !IsRead(parser_->get().method())) refusal = OnlyGet();
    Write(*std::move(refusal), wire::verb::get, /*keep_alive=*/false);
  }

  void Handle() {
    const auto& request = parser_->get();
    const wire::verb method = request.method();
    if (!IsRead(method)) return Write(OnlyGet(), method, request.keep_alive());
    Write(serving_.handler({.method = View(request.method_string()),
                            .target = View(request.target()),
                            .host = View(request[wire::field::host]),
                            .port = serving_.port,
                            .has_gone = [this] { return HasGone(); }}),
          method, request.keep_alive());
  }

  void Write(Answer answer, wire::verb method, bool keep_alive) {
    response_ = {};
    response_.version(parser_->get().version() == 10 ? 10 : 11);
    response_.result(static_cast<unsigned>(answer.status));
    response_.keep_alive(keep_alive);
    response_.set(wire::field::content_type, answer.content_type);
    if (answer.status == 405) response_.set(wire::field::allow, "GET, HEAD");
    response_.set(wire::field::cache_control, "no-store");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Cross-Origin-Resource-Policy", "same-origin");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("X-Frame-Options", "DENY");
    response_.content_length(answer.body.size());
    const bool head_alone = method == wire::verb::head;
    if (!head_alone) response_.body() = std::move(answer.body);
    serializer_.emplace(response_);
    stream_.expires_after(serving_.options.patience);
    const auto written = [self = shared_from_this()](error_code error, size_t) {
      if (error || !self->response_.keep_alive()) return self->Close();
      self->Read();
    };
    if (head_alone) return wire::async_write_header(stream_, *serializer_, written);
    wire::async_write(stream_, *serializer_, written);
  }

  // Whether the client has closed the connection: it does not wait for what it asked for.
  bool HasGone() {
    if (serving_.ends.load(std::memory_order_relaxed)) return true;
    char byte = 0;
    return recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<wire::request_parser<wire::empty_body>> parser_;
  wire::response<wire::string_body> response_;
  std::optional<wire::response_serializer<wire::string_body>> serializer_;
  Serving& serving_;
  std::list<Connection*>::iterator place_;
  bool is_idle_ = false;
};

class ThreadedServer final : public Server {
 public:
  ThreadedServer(Handler handler, const Options& options)
      : serving_{.handler = std::move(handler), .options = options},
        context_(1),
        acceptor_(context_),
        retry_(context_) {}

  ~ThreadedServer() override {
    serving_.ends.store(true, std::memory_order_relaxed);
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Listen(const Endpoint& endpoint) {
    error_code error;
    const std::string host = endpoint.host == "localhost" ? "127.0.0.1" : endpoint.host;
    const asio::ip::address address = asio::ip::make_address(host, error);
    if (error) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", endpoint.host, "' is not an address to listen on: write 127.0.0.1 or ::1"));
    }
    const tcp::endpoint place(address, endpoint.port);
    acceptor_.open(place.protocol(), error);
    if (!error) CloseOnExec(acceptor_.native_handle());
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(place, error);
    if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    if (!error) serving_.port = acceptor_.local_endpoint(error).port();
    if (!error) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "tcp:", address.is_v6() ? absl::StrCat("[", host, "]") : endpoint.host, ":", endpoint.port,
        " cannot be listened on: ", error.message(), " (port 0 takes a free one)"));
  }

  void Run() {
    Accept();
    const BlockedSignals blocked;  // they are for other threads
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "vcpulse-http");
      context_.run();
    });
  }

  uint16_t port() const override { return serving_.port; }

 private:
  void Accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return AcceptLater();  // without descriptors, for example
      if (serving_.connections.size() < serving_.options.most_connections || MakeRoom()) {
        std::make_shared<Connection>(std::move(socket), serving_)->Read();
      }
      Accept();
    });
  }

  // Closes the connection that has waited longest; it goes with its handlers, a moment later.
  bool MakeRoom() {
    const auto oldest = std::ranges::find_if(serving_.connections,
                                             [](const Connection* one) { return one->is_idle(); });
    if (oldest == serving_.connections.end()) return false;
    (*oldest)->Close();
    return true;
  }

  void AcceptLater() {
    retry_.expires_after(kAcceptRetry);
    retry_.async_wait([this](error_code error) {
      if (!error) Accept();
    });
  }

  Serving serving_;
  asio::io_context context_;  // its connections refer to serving_
  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Endpoint& endpoint, Handler handler,
                                                      const Options& options) {
  auto server = std::make_unique<ThreadedServer>(std::move(handler), options);
  if (absl::Status status = server->Listen(endpoint); !status.ok()) return status;
  server->Run();
  return server;
}

absl::StatusOr<Endpoint> ParseLoopbackAddress(const std::string& text) {
  std::string_view rest = text;
  const size_t colon = rest.rfind(':');
  if (!rest.starts_with("tcp:") || colon < 4) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text,
        "' is not an address: write tcp:127.0.0.1:PORT, tcp:[::1]:PORT or tcp:localhost:PORT"));
  }
  std::string host(rest.substr(4, colon - 4));
  const auto port = ParseNumber<uint16_t>(rest.substr(colon + 1));
  if (!port) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': '",
                                                   ToAbsl(rest.substr(colon + 1)),
                                                   "' is not a port (0 is any that is free)"));
  }
  if (host == "[::1]") host = "::1";
  if (host != "127.0.0.1" && host != "::1" && host != "localhost") {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text,
                     "': only this machine is served (127.0.0.1, [::1] or localhost); "
                     "from another one use ssh -L"));
  }
  return Endpoint{.host = host, .port = *port};
}

std::string UrlOf(const std::string& host, uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? absl::StrCat("http://[", host, "]:", port, "/")
               : absl::StrCat("http://", host, ":", port, "/");
}

Answer AnotherName() {
  return {.status = 421,
          .body = "this server answers to its own name alone: use the address it printed\n"};
}

bool IsOwnName(std::string_view host, uint16_t port) {
  for (const std::string_view name : {"127.0.0.1", "[::1]", "localhost"}) {
    if (!host.starts_with(name)) continue;
    const std::string_view rest = host.substr(name.size());
    // Browsers leave 80 out.
    if (rest.empty()) return port == 80;
    return rest == absl::StrCat(":", port);
  }
  return false;
}

}  // namespace vcpulse::http

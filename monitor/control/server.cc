#include "monitor/control/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "monitor/control/listening_socket.h"
#include "monitor/control/request.h"

namespace vcpulse::control {

namespace asio = boost::asio;
using boost::system::error_code;

// Reads requests, one after the other: the next is looked at once the one before is answered and
// its answer taken, so there is never more than one answer to keep. One thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;

  // `ended` is called once, when the connection has closed itself.
  Connection(Socket socket, const Server::Options& options, Server::Handler handler,
             std::function<void(Connection*)> ended);

  // Begins to read.
  void Start();
  // Answers with an error and closes.
  void TurnAway(const std::string& why);
  // Closes without a word to `ended`.
  void Close();

 private:
  enum class State { kReading, kAnswering, kWriting, kClosed };

  void Read();
  // Takes the lines that are there, until one waits for its answer.
  void TakeLines();
  void TakeLine(const LineSplitter::Line& line);
  void Answer(const Response& response);
  // Sends what of the answer is left. True where all of it has gone.
  bool Send();
  void WriteOn();
  void StartPatience();
  void End();

  Socket socket_;
  boost::asio::steady_timer patience_;
  Server::Options options_;
  Server::Handler handler_;
  std::function<void(Connection*)> ended_;
  State state_ = State::kReading;
  bool taking_lines_ = false;
  bool ends_after_answer_ = false;
  LineSplitter lines_;
  int64_t received_mono_ns_ = 0;
  std::array<char, 1024> buffer_{};
  std::string output_;
};

Connection::Connection(Socket socket, const Server::Options& options, Server::Handler handler,
                       std::function<void(Connection*)> ended)
    : socket_(std::move(socket)),
      patience_(socket_.get_executor()),
      options_(options),
      handler_(std::move(handler)),
      ended_(std::move(ended)) {}

void Connection::Start() {
  StartPatience();
  Read();
}

void Connection::TurnAway(const std::string& why) {
  ends_after_answer_ = true;
  state_ = State::kAnswering;
  Answer({.error = absl::FailedPreconditionError(why)});
}

void Connection::Close() {
  state_ = State::kClosed;
  patience_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

void Connection::End() {
  if (state_ == State::kClosed) return;
  Close();
  ended_(this);
}

void Connection::StartPatience() {
  patience_.expires_after(options_.patience);
  patience_.async_wait([self = shared_from_this()](const error_code& error) {
    // Begun anew since; or an answer is being made, which is its owner's affair.
    const bool over = self->patience_.expiry() <= asio::steady_timer::clock_type::now();
    if (!error && over && self->state_ != State::kAnswering) self->End();
  });
}

void Connection::Read() {
  socket_.async_read_some(asio::buffer(buffer_),
                          [self = shared_from_this()](const error_code& error, size_t size) {
                            if (self->state_ == State::kClosed) return;
                            // The client has gone; half a request is none.
                            if (error) return self->End();
                            self->received_mono_ns_ = self->options_.now_ns();
                            self->lines_.Receive({self->buffer_.data(), size});
                            self->TakeLines();
                          });
}

void Connection::TakeLines() {
  taking_lines_ = true;
  while (state_ == State::kReading) {
    const std::optional<LineSplitter::Line> line = lines_.Next();
    if (!line) {
      Read();
      break;
    }
    TakeLine(*line);
  }
  taking_lines_ = false;
}

void Connection::TakeLine(const LineSplitter::Line& line) {
  if (line.too_long) {
    return TurnAway(absl::StrCat("column ", kLongestLine_bytes + 1, ": a request has at most ",
                                 kLongestLine_bytes, " bytes"));
  }
  state_ = State::kAnswering;
  const absl::StatusOr<Request> request = ParseRequest(line.text);
  if (!request.ok()) return Answer({.error = request.status()});
  handler_(*request, received_mono_ns_, [weak = weak_from_this()](const Response& response) {
    if (const std::shared_ptr<Connection> self = weak.lock()) self->Answer(response);
  });
}

void Connection::Answer(const Response& response) {
  if (state_ != State::kAnswering) return;
  state_ = State::kWriting;
  output_ = ResponseLine(response);
  StartPatience();
  // At once rather than through the context, so that the answer to `stop` goes although the context
  // has been stopped.
  WriteOn();
}

bool Connection::Send() {
  while (!output_.empty()) {
    const ssize_t sent = ::send(socket_.native_handle(), output_.data(), output_.size(),
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      output_.erase(0, static_cast<size_t>(sent));
    } else if (errno != EINTR) {
      if (errno != EAGAIN) End();
      return false;
    }
  }
  return true;
}

void Connection::WriteOn() {
  if (Send()) {
    if (ends_after_answer_) return End();
    state_ = State::kReading;
    if (taking_lines_) return;
    // Not from within its owner's call of the answer, which may be its last.
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      if (self->state_ == State::kReading) self->TakeLines();
    });
  } else if (state_ == State::kWriting) {
    socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const error_code& error) {
      if (self->state_ != State::kWriting) return;
      if (error) return self->End();
      self->WriteOn();
    });
  }
}

namespace {

using Protocol = asio::local::stream_protocol;

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

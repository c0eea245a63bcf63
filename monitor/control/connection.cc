#include "monitor/control/connection.h"

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace vcpulse::control {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

}  // namespace

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
    if (!taking_lines_) TakeLines();
  } else if (state_ == State::kWriting) {
    socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const error_code& error) {
      if (self->state_ != State::kWriting) return;
      if (error) return self->End();
      self->WriteOn();
    });
  }
}

}  // namespace vcpulse::control

#pragma once

// Of the server: one client. Only server.cc and connection.cc include this.

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "monitor/control/line_splitter.h"
#include "monitor/control/server.h"

namespace vcpulse::control {

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

}  // namespace vcpulse::control

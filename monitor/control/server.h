#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kvm/base/clock.h"
#include "monitor/control/request.h"
#include "monitor/control/response.h"

namespace boost::asio {
class io_context;
}

namespace vcpulse::control {

// Takes requests on a unix socket of mode 0600 and hands them to its owner, in the order in which
// they arrive. Answers only to root and the user it runs as. At most kMostConnections at once, each
// closed when it leaves us waiting for `patience`: for a whole request, or to take its answer. A
// client that sends what is no request costs its own connection at most. All of it on the thread
// that runs the io_context.
class Server {
 public:
  static constexpr size_t kMostConnections = 16;

  // Answers a request: called once, at once or later; does nothing where the client has gone.
  using Answer = std::function<void(const Response&)>;
  // `received_mono_ns`: CLOCK_MONOTONIC when the bytes of the request were read.
  using Handler =
      std::function<void(const Request& request, int64_t received_mono_ns, const Answer& answer)>;

  struct Options {
    std::string path;
    Clock now_ns = nullptr;
    std::chrono::milliseconds patience{10'000};
  };

  // Listens at `options.path`. `context` must outlive the server. Errors: of ListeningSocket::Open.
  static absl::StatusOr<std::unique_ptr<Server>> Listen(boost::asio::io_context& context,
                                                        const Options& options, Handler handler);

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Closes all connections and removes the socket. What was answered reaches its client still.
  ~Server();

 private:
  class Impl;
  explicit Server(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace vcpulse::control

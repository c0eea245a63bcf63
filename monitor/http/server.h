#pragma once

// monitor/http is a small HTTP server: whole answers to GET and HEAD. Asio and Beast are in its .cc
// files alone. What is answered is its users' affair (monitor/page, monitor/prometheus).

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace vcpulse::http {

struct Endpoint {
  std::string host;   // an address, or "localhost" (127.0.0.1)
  uint16_t port = 0;  // 0: any that is free
};

struct Request {
  std::string_view method;  // GET or HEAD
  std::string_view target;
  std::string_view host;  // the Host header
  uint16_t port = 0;      // that the server listens on
  // Whether nobody waits for the answer any more, so that it need not be made. May be empty.
  std::function<bool()> has_gone{};
};

struct Answer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

using Handler = std::function<Answer(const Request&)>;

// Serves from a thread of its own until it is destroyed. Heads of at most 8 KiB (431), no bodies
// (413), GET and HEAD alone (405): none of these reaches the handler.
class Server {
 public:
  struct Options {
    size_t most_connections = 32;  // one more takes the place of the one that is idle the longest
    // For a client to send its whole request, or to take its whole answer; else it is dropped.
    std::chrono::milliseconds patience{30'000};
  };

  // `handler` is called on the server's thread, one request at a time. Errors: InvalidArgument for
  // a host that is no address; what bind(2) said, naming the address and what to do.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Endpoint& endpoint, Handler handler,
                                                       const Options& options);
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Endpoint& endpoint, Handler handler) {
    return Start(endpoint, std::move(handler), Options());
  }
  // Ends at once; waits for a handler that is at work, whose has_gone says yes from then on.
  virtual ~Server() = default;

  virtual uint16_t port() const = 0;

 protected:
  Server() = default;
};

// Servers of this machine alone: their addresses, and the names that they go by.

// "tcp:127.0.0.1:PORT", "tcp:[::1]:PORT" or "tcp:localhost:PORT", localhost being 127.0.0.1.
// Errors: InvalidArgument in one line, for an address that other machines could reach too.
absl::StatusOr<Endpoint> ParseLoopbackAddress(const std::string& text);

// "http://127.0.0.1:8080/": where a browser finds a server on this host and port.
std::string UrlOf(const std::string& host, uint16_t port);

// The answer to a request that names another host: a page of elsewhere may have sent it.
Answer AnotherName();

// Whether a request that names this `host` (its Host header) means a loopback server on `port`. Any
// other is of a page of somebody else's that has its name point here: it must not be told anything.
bool IsOwnName(std::string_view host, uint16_t port);

}  // namespace vcpulse::http

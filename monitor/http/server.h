#pragma once

// monitor/http is a small HTTP server: whole answers to GET and HEAD. Asio and Beast are in its .cc
// files alone. What is answered is its users' affair (monitor/page, monitor/metrics).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace vcpulse::http {

struct Endpoint {
  std::string host;   // an address, or "localhost" (127.0.0.1)
  uint16_t port = 0;  // 0: any that is free
};

struct Request {
  std::string_view method;
  std::string_view target;
  std::string_view host;  // the Host header
};

struct Answer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

using Handler = std::function<Answer(const Request&)>;

// Serves from a thread of its own until it is destroyed. At most 32 connections, heads of at most
// 8 KiB, no bodies; a client that leaves it waiting for 30 s is dropped.
class Server {
 public:
  // `handler` is called on the server's thread, one request at a time. Errors: what bind(2) said,
  // naming the address and what to do.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Endpoint& endpoint, Handler handler);
  virtual ~Server() = default;

  virtual uint16_t port() const = 0;

 protected:
  Server() = default;
};

}  // namespace vcpulse::http

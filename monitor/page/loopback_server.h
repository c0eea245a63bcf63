#pragma once

// HTTP on this machine alone.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/page/answer.h"

namespace vcpulse::page {

struct LoopbackAddress {
  std::string host;   // "127.0.0.1", "::1" or "localhost"
  uint16_t port = 0;  // 0: any that is free
};

// "tcp:127.0.0.1:PORT", "tcp:[::1]:PORT" or "tcp:localhost:PORT", localhost being 127.0.0.1.
// Errors: InvalidArgument in one line, for an address that other machines could reach too.
absl::StatusOr<LoopbackAddress> ParseLoopbackAddress(const std::string& text);

// What a request may name as its host once the server listens on `port`: with and without the port
// where that is 80.
std::vector<std::string> HostsOf(uint16_t port);

// Serves `source` until SIGINT or SIGTERM. `listening` is called once with the URL, and ends it
// with an error. At most 32 connections, heads of at most 8 KiB, no bodies; a client that leaves it
// waiting for 30 s is dropped. Everything on the calling thread: one request at a time. Errors:
// what bind(2) said, naming the address; that of `listening`.
absl::Status ServeOnLoopback(const LoopbackAddress& address, const Source& source,
                             const std::function<absl::Status(const std::string& url)>& listening);

}  // namespace vcpulse::page

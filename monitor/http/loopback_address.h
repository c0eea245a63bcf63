#pragma once

// Servers of this machine alone: their addresses, and the names that they go by.

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "monitor/http/server.h"

namespace vcpulse::http {

// "tcp:127.0.0.1:PORT", "tcp:[::1]:PORT" or "tcp:localhost:PORT", localhost being 127.0.0.1.
// Errors: InvalidArgument in one line, for an address that other machines could reach too.
absl::StatusOr<Endpoint> ParseLoopbackAddress(const std::string& text);

// "http://127.0.0.1:8080/": where a browser finds a server on this host and port.
std::string UrlOf(const std::string& host, uint16_t port);

// Whether a request that names this `host` (its Host header) means a loopback server on `port`. Any
// other is of a page of somebody else's that has its name point here: it must not be told anything.
bool IsOwnName(std::string_view host, uint16_t port);

}  // namespace vcpulse::http

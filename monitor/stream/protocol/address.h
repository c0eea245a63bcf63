#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace vcpulse::stream {

// Where a collector listens.
struct Address {
  enum class Kind { kUnix, kTcp, kTls };
  Kind kind = Kind::kUnix;
  std::string path{};  // kUnix
  std::string host{};  // else: a name, an IPv4 address, or an IPv6 address without its brackets
  uint16_t port = 0;   // 0, to listen only: any that is free

  bool operator==(const Address&) const = default;
};

// "unix:PATH", "tcp:HOST:PORT", "tls:HOST:PORT"; an IPv6 address in brackets. Errors:
// InvalidArgument in one line that shows the text and what was expected.
absl::StatusOr<Address> ParseAddress(const std::string& text);

// The same, to connect to. InvalidArgument for port 0 too, which means something to listeners
// alone.
absl::StatusOr<Address> ParseDestination(const std::string& text);

// An address as text.
std::string ToText(const Address& address);
// "tcp:a:4711 or tls:b:4711", for people.
std::string ToText(const std::vector<Address>& addresses);

// Whether only this machine can reach it: unix, or a host that is "localhost", 127.0.0.0/8 or ::1.
bool IsLoopback(const Address& address);

}  // namespace vcpulse::stream

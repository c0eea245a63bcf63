#include "monitor/stream/protocol/address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::stream {
namespace {

constexpr size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;
constexpr size_t kMaxHostBytes = 253;

absl::Status NoAddress(const std::string& text, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", absl::Utf8SafeCHexEscape(text), "\" is not an address: ", why,
                   " (unix:PATH, tcp:HOST:PORT or tls:HOST:PORT; an IPv6 address in brackets)"));
}

// Without a zone ("fe80::1%eth0").
bool IsIpv6(const std::string& host) {
  const std::string address = host.substr(0, host.find('%'));
  in6_addr parsed{};
  return inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

bool IsHostName(std::string_view host) {
  return !host.empty() && host.size() <= kMaxHostBytes &&
         std::ranges::all_of(host, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
         });
}

bool IsIpv6WithZone(const std::string& host) {
  return IsIpv6(host) && host.size() <= kMaxHostBytes &&
         std::ranges::all_of(host, [](unsigned char c) { return std::isgraph(c) != 0; });
}

absl::StatusOr<Address> ParseUnix(const std::string& text, const std::string& path) {
  if (path.empty()) return NoAddress(text, "the path is missing");
  if (path.find('\0') != std::string::npos) return NoAddress(text, "a path has no zero byte");
  if (path.size() > kMaxPathBytes) {
    return NoAddress(text, absl::StrCat("the path of a unix socket has at most ", kMaxPathBytes,
                                        " bytes, this one has ", path.size()));
  }
  return Address{.kind = Address::Kind::kUnix, .path = path};
}

absl::StatusOr<Address> ParseHostAndPort(const std::string& text, Address::Kind kind,
                                         const std::string& rest) {
  const size_t colon = rest.rfind(':');
  if (colon == std::string::npos) return NoAddress(text, "the port is missing");
  const std::optional<uint16_t> port =
      ParseNumber<uint16_t>(std::string_view(rest).substr(colon + 1));
  if (!port) return NoAddress(text, "the port is not a number from 0 to 65535");
  std::string host = rest.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (!IsIpv6WithZone(host)) return NoAddress(text, "what is in brackets is not an IPv6 address");
  } else if (host.find(':') != std::string::npos) {
    return NoAddress(text, "an IPv6 address needs brackets, as in tcp:[::1]:4711");
  } else if (!IsHostName(host)) {
    return NoAddress(text, "the host is missing or no name");
  }
  return Address{.kind = kind, .host = std::move(host), .port = *port};
}

}  // namespace

absl::StatusOr<Address> ParseAddress(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string scheme = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (colon != std::string::npos) {
    if (scheme == "unix") return ParseUnix(text, rest);
    if (scheme == "tcp") return ParseHostAndPort(text, Address::Kind::kTcp, rest);
    if (scheme == "tls") return ParseHostAndPort(text, Address::Kind::kTls, rest);
  }
  return NoAddress(text, "it begins with none of unix:, tcp: and tls:");
}

absl::StatusOr<Address> ParseDestination(const std::string& text) {
  absl::StatusOr<Address> address = ParseAddress(text);
  if (address.ok() && address->kind != Address::Kind::kUnix && address->port == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToText(*address), ": nobody listens on port 0: name the port that the ",
                     "collector says it listens on"));
  }
  return address;
}

std::string ToText(const Address& address) {
  if (address.kind == Address::Kind::kUnix) return absl::StrCat("unix:", address.path);
  const bool brackets = address.host.find(':') != std::string::npos;
  return absl::StrCat(address.kind == Address::Kind::kTls ? "tls:" : "tcp:", brackets ? "[" : "",
                      address.host, brackets ? "]:" : ":", address.port);
}

std::string ToText(const std::vector<Address>& addresses) {
  std::string names;
  for (const Address& address : addresses) {
    absl::StrAppend(&names, names.empty() ? "" : " or ", ToText(address));
  }
  return names;
}

bool IsLoopback(const Address& address) {
  if (address.kind == Address::Kind::kUnix) return true;
  if (absl::EqualsIgnoreCase(address.host, "localhost")) return true;
  std::array<uint8_t, sizeof(in_addr)> four{};
  if (inet_pton(AF_INET, address.host.c_str(), four.data()) == 1) return four[0] == 127;
  in6_addr six{};
  return inet_pton(AF_INET6, address.host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

}  // namespace vcpulse::stream

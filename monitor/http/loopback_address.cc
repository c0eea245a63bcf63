#include "monitor/http/loopback_address.h"

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::http {

absl::StatusOr<Endpoint> ParseLoopbackAddress(const std::string& text) {
  std::string_view rest = text;
  const size_t colon = rest.rfind(':');
  if (!rest.starts_with("tcp:") || colon < 4) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text,
        "' is no address: write tcp:127.0.0.1:PORT, tcp:[::1]:PORT or tcp:localhost:PORT"));
  }
  std::string host(rest.substr(4, colon - 4));
  const auto port = ParseNumber<uint16_t>(rest.substr(colon + 1));
  if (!port) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "': '", ToAbsl(rest.substr(colon + 1)), "' is no port (0 is any that is free)"));
  }
  if (host == "[::1]") host = "::1";
  if (host != "127.0.0.1" && host != "::1" && host != "localhost") {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text,
                     "': only this machine is served (127.0.0.1, [::1] or localhost); "
                     "from another one use ssh -L"));
  }
  return Endpoint{.host = host, .port = *port};
}

std::string UrlOf(const std::string& host, uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? absl::StrCat("http://[", host, "]:", port, "/")
               : absl::StrCat("http://", host, ":", port, "/");
}

bool IsOwnName(std::string_view host, uint16_t port) {
  for (const std::string_view name : {"127.0.0.1", "[::1]", "localhost"}) {
    if (!host.starts_with(name)) continue;
    const std::string_view rest = host.substr(name.size());
    // Browsers leave 80 out.
    if (rest.empty()) return port == 80;
    return rest == absl::StrCat(":", port);
  }
  return false;
}

}  // namespace vcpulse::http

#include <string_view>

#include "absl/strings/str_cat.h"
#include "kvm/text.h"
#include "monitor/page/loopback_server.h"

namespace vcpulse::page {

absl::StatusOr<LoopbackAddress> ParseLoopbackAddress(const std::string& text) {
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
  return LoopbackAddress{.host = host, .port = *port};
}

std::vector<std::string> HostsOf(uint16_t port) {
  std::vector<std::string> hosts;
  for (const char* name : {"127.0.0.1", "[::1]", "localhost"}) {
    hosts.push_back(absl::StrCat(name, ":", port));
    if (port == 80) hosts.emplace_back(name);
  }
  return hosts;
}

}  // namespace vcpulse::page

#include "tools/vcpulse/metrics_endpoint.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/http/loopback_address.h"
#include "monitor/prometheus/scrape.h"

namespace vcpulse::tools {

absl::StatusOr<MetricsEndpoint> ServeMetrics(const std::string& address,
                                             std::vector<std::function<std::string()>> sources) {
  const auto with_flag = [](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("--metrics: ", status.message()));
  };
  const auto endpoint = http::ParseLoopbackAddress(address);
  if (!endpoint.ok()) return with_flag(endpoint.status());
  const auto all = [sources = std::move(sources)] {
    std::string text;
    for (const auto& source : sources) text += source();
    return text;
  };
  auto server = http::Server::Start(*endpoint, [all](const http::Request& request) {
    return prometheus::AnswerScrape(request, "vcpulse record", all);
  });
  if (!server.ok()) return with_flag(server.status());
  std::string url = absl::StrCat(http::UrlOf(endpoint->host, (*server)->port()), "metrics");
  return MetricsEndpoint{.server = *std::move(server), .url = std::move(url)};
}

}  // namespace vcpulse::tools

#include "tools/vcpulse/metrics_endpoint.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/http/loopback_address.h"
#include "monitor/metrics/scrape.h"

namespace vcpulse::tools {

absl::StatusOr<std::unique_ptr<http::Server>> ServeMetrics(
    const std::string& address, std::vector<std::function<std::string()>> sources) {
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
    return metrics::AnswerScrape(request, "vcpulse record", all);
  });
  if (!server.ok()) return with_flag(server.status());
  std::fprintf(stderr, "vcpulse: metrics at %smetrics\n",
               http::UrlOf(endpoint->host, (*server)->port()).c_str());
  return server;
}

}  // namespace vcpulse::tools

#include "tools/vcpulse/metrics_endpoint.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/prometheus/exposition.h"

namespace vcpulse::tools {

absl::Status MetricsOptions::Validate() const {
  if (!level.empty() && !prometheus::FindMetricsLevel(level)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics-level: ", Quoted(level), " is not a level; host, vm and vcpu are"));
  }
  if (address.empty()) {
    return level.empty() ? absl::OkStatus()
                         : absl::InvalidArgumentError("--metrics-level needs --metrics");
  }
  if (const auto endpoint = http::ParseLoopbackAddress(address); !endpoint.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--metrics: ", endpoint.status().message()));
  }
  return absl::OkStatus();
}

prometheus::MetricsLevel MetricsOptions::Level() const {
  return prometheus::FindMetricsLevel(level).value_or(prometheus::MetricsLevel::kVcpu);
}

std::vector<CLI::Option*> AddMetricsOptions(CLI::App& command, MetricsOptions& options,
                                            const std::string& help) {
  CLI::Option* metrics =
      command.add_option("--metrics", options.address, help)->type_name("tcp:127.0.0.1:PORT");
  CLI::Option* level =
      command
          .add_option("--metrics-level", options.level,
                      "how finely --metrics serves: sums of the host alone, also of each VM, also "
                      "each vCPU [vcpu]")
          ->type_name("host|vm|vcpu");
  return {metrics, level};
}

absl::StatusOr<MetricsEndpoint> ServeMetrics(const std::string& address, const std::string& title,
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
  auto server = http::Server::Start(*endpoint, [all, title](const http::Request& request) {
    return prometheus::AnswerScrape(request, title, all);
  });
  if (!server.ok()) return with_flag(server.status());
  std::string url = absl::StrCat(http::UrlOf(endpoint->host, (*server)->port()), "metrics");
  return MetricsEndpoint{.server = *std::move(server), .url = std::move(url)};
}

}  // namespace vcpulse::tools

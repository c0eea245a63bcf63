#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "monitor/http/server.h"
#include "monitor/prometheus/vcpu_metrics.h"

namespace vcpulse::tools {

// --metrics and --metrics-level, of the commands that serve what vCPUs did.
struct MetricsOptions {
  std::string address;  // empty: nothing is served
  std::string level;    // empty: vcpu

  // Of the flags above. InvalidArgument in one line that names the flag, or OK.
  absl::Status Validate() const;
  // After Validate.
  prometheus::MetricsLevel Level() const;
};

// Adds both; `help` is that of --metrics. Returns them, for their group.
std::vector<CLI::Option*> AddMetricsOptions(CLI::App& command, MetricsOptions& options,
                                            const std::string& help);

struct MetricsEndpoint {
  std::unique_ptr<http::Server> server;
  std::string url;
};

// Serves /metrics until the server is destroyed, at an address as http::ParseLoopbackAddress takes
// it; `title` is that of its page. Each source gives whole families of Prometheus's exposition
// format, none of them that another source gives; they are called on the server's thread, and what
// they refer to must outlive it. Errors: those of the address and of http::Server, naming
// --metrics.
absl::StatusOr<MetricsEndpoint> ServeMetrics(const std::string& address, const std::string& title,
                                             std::vector<std::function<std::string()>> sources);

}  // namespace vcpulse::tools

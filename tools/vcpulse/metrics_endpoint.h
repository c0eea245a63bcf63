#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/http/server.h"

namespace vcpulse::tools {

struct MetricsEndpoint {
  std::unique_ptr<http::Server> server;
  std::string url;
};

// Serves /metrics until the server is destroyed. `address` is of
// http::ParseLoopbackAddress. Each source gives whole families of Prometheus's exposition format,
// none of them that another source gives; they are called on the server's thread, and what they
// refer to must outlive it. Errors: those of the address and of http::Server, naming --metrics.
absl::StatusOr<MetricsEndpoint> ServeMetrics(const std::string& address,
                                             std::vector<std::function<std::string()>> sources);

}  // namespace vcpulse::tools

#pragma once

// The page over HTTP, on this machine alone.

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "monitor/http/server.h"
#include "monitor/page/answer.h"

namespace vcpulse::page {

// Serves `source` until SIGINT or SIGTERM, as http::Server does; its functions are called on the
// server's thread. `endpoint` is of http::ParseLoopbackAddress. `listening` is called once with the
// URL, on this thread, and ends it with an error. Errors: those of http::Server; that of
// `listening`.
absl::Status ServeOnLoopback(const http::Endpoint& endpoint, const Source& source,
                             const std::function<absl::Status(const std::string& url)>& listening);

}  // namespace vcpulse::page

#pragma once

#include <functional>
#include <string>

#include "monitor/http/server.h"

namespace vcpulse::prometheus {

// What a server of metrics answers: `text` at /metrics, at / a page with `title` that links to it,
// else 404. A request that names another host is refused (421), as http::IsOwnName says: this is
// for servers on loopback alone.
http::Answer AnswerScrape(const http::Request& request, const std::string& title,
                          const std::function<std::string()>& text);

}  // namespace vcpulse::prometheus

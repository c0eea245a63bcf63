#include "monitor/prometheus/scrape.h"

#include <string_view>

#include "monitor/http/loopback_address.h"

namespace vcpulse::prometheus {

http::Answer AnswerScrape(const http::Request& request, const std::string& title,
                          const std::function<std::string()>& text) {
  if (!http::IsOwnName(request.host, request.port)) {
    return {.status = 421,
            .body = "this server answers to its own name alone: use the address it printed\n"};
  }
  const std::string_view path = request.target.substr(0, request.target.find('?'));
  if (path == "/metrics") {
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = text()};
  }
  if (path == "/") {
    return {.content_type = "text/html; charset=utf-8",
            .body = "<!DOCTYPE html>\n<title>" + title + "</title>\n<h1>" + title +
                    "</h1>\n<p><a href=\"/metrics\">Metrics</a> for Prometheus</p>\n"};
  }
  return {.status = 404, .body = "there are / and /metrics\n"};
}

}  // namespace vcpulse::prometheus

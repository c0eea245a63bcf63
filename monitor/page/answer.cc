#include "monitor/page/answer.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "kvm/base/text.h"
#include "monitor/http/server.h"

namespace vcpulse::page {
namespace {

http::Answer Refusal(int status, std::string_view text) {
  return {.status = status, .body = std::string(text) + "\n"};
}

http::Answer Of(const absl::StatusOr<std::string>& body, std::string_view content_type) {
  if (!body.ok()) return Refusal(500, ToStd(body.status().message()));
  return {.content_type = std::string(content_type), .body = *body};
}

// The value of a whole number in "a=1&b=2"; nothing where it is absent or none.
std::optional<int64_t> NumberIn(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view field = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), field.size() + 1));
    const size_t equals = field.find('=');
    if (equals == std::string_view::npos || field.substr(0, equals) != name) continue;
    return ParseNumber<int64_t>(field.substr(equals + 1));
  }
  return std::nullopt;
}

std::optional<BinsWanted> ParseBins(std::string_view query) {
  const auto from_ns = NumberIn(query, "from");
  const auto to_ns = NumberIn(query, "to");
  const auto bins = NumberIn(query, "bins");
  if (!from_ns || !to_ns || !bins) return std::nullopt;
  constexpr int64_t kMostDistant_ns = int64_t{1} << 61;
  const bool within =
      *from_ns >= -kMostDistant_ns && *from_ns < *to_ns && *to_ns <= kMostDistant_ns;
  if (!within || *bins < 1 || *bins > BinsWanted::kMostBins) return std::nullopt;
  return BinsWanted{.from_ns = *from_ns, .to_ns = *to_ns, .bins = *bins};
}

}  // namespace

http::Answer Answer(const http::Request& request, const Source& source) {
  if (!http::IsOwnName(request.host, request.port)) {
    return Refusal(421, "this server answers to its own name alone: use the address it printed");
  }
  const size_t mark = request.target.find('?');
  const std::string_view path = request.target.substr(0, mark);
  const std::string_view query =
      mark == std::string_view::npos ? std::string_view() : request.target.substr(mark + 1);
  if (path == "/") return Of(source.page(), "text/html; charset=utf-8");
  if (path == "/summary") return Of(source.summary(), "application/json");
  if (path == "/bins") {
    const auto wanted = ParseBins(query);
    if (!wanted) {
      return Refusal(400,
                     "write /bins?from=NS&to=NS&bins=N: from < to, after the start, N 1..8192");
    }
    return Of(source.bins(*wanted, request.has_gone), "application/octet-stream");
  }
  return Refusal(404, "there are /, /summary and /bins");
}

}  // namespace vcpulse::page

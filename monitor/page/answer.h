#pragma once

// What an HTTP request to `report --serve` is answered. Pure but for what the source reads.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace vcpulse::page {

struct Request {
  std::string_view method;
  std::string_view target;  // "/bins?from=0&to=1000000000&bins=500"
  std::string_view host;    // the Host header
  // Whether nobody waits for the answer any more, so that it need not be made. May be empty.
  std::function<bool()> has_gone{};
};

struct Response {
  int status = 200;
  std::string content_type;
  std::string body;
};

// A stretch of time, ns after the recording's start, in at most so many bins.
struct BinsWanted {
  static constexpr int64_t kMostBins = 8192;

  int64_t from_ns = 0;
  int64_t to_ns = 0;
  int64_t bins = 1;

  bool operator==(const BinsWanted&) const = default;
};

// Where the answers come from. Errors go to the client as text: they are of its own machine.
struct Source {
  std::function<absl::StatusOr<std::string>()> page;     // HTML
  std::function<absl::StatusOr<std::string>()> summary;  // JSON
  // As packing.h. May give up where the client has gone.
  std::function<absl::StatusOr<std::string>(const BinsWanted&,
                                            const std::function<bool()>& has_gone)>
      bins;
};

// GET (and HEAD, whose body the caller leaves out) of /, /summary and
// /bins?from=NS&to=NS&bins=N. `hosts` are the names this server goes by, with their port: a request
// for any other is a page of somebody else's that has its name point here, and is refused (421).
Response Answer(const Request& request, const std::vector<std::string>& hosts,
                const Source& source);

}  // namespace vcpulse::page

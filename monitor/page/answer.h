#pragma once

// What an HTTP request to `report --serve` is answered. Pure but for what the source reads.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "monitor/http/server.h"

namespace vcpulse::page {

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

// Of /, /summary and /bins?from=NS&to=NS&bins=N. A request for a host that is not this server's
// name is refused (421).
http::Answer Answer(const http::Request& request, const Source& source);

}  // namespace vcpulse::page

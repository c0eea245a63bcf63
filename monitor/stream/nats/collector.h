#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "monitor/stream/nats/connection.h"
#include "monitor/stream/net/collector.h"

namespace vcpulse::stream {

// Takes chunks from JetStream and keeps them below one directory (SharedStore). Collectors that
// name the same consumer share its chunks: JetStream hands each to one of them, and to another one
// where it is not acknowledged in time. A chunk is acknowledged when it is on disk.
struct NatsCollectorOptions {
  NatsOptions server;
  std::string address;  // of the server, for people
  std::string consumer = "vcpulse";
  // A chunk that a collector has had for so long without acknowledging it goes to another one.
  std::chrono::nanoseconds ack_wait{std::chrono::seconds(15)};
  // directory, files, store, retention, realtime and say; the rest means nothing here.
  Collector::Options collector;
};

// Begins to take, on a thread of its own. A broker that is away is waited for. Errors: of the
// options and the directory; PermissionDenied and FailedPrecondition of a broker that is there and
// of no use (CheckJetStream).
absl::StatusOr<std::unique_ptr<Collector>> StartNatsCollector(NatsCollectorOptions options);

}  // namespace vcpulse::stream

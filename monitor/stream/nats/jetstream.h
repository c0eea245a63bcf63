#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/stream/nats/connection.h"

struct __jsCtx;  // of libnats

namespace vcpulse::stream {

// What the JetStream stream of all chunks keeps (`collect --make-stream`). Nothing: as it is, or
// for a new stream 1 replica, 72 hours, as much as the servers have.
struct JetStreamLimits {
  std::optional<int64_t> replicas{};
  std::optional<std::chrono::nanoseconds> max_age{};
  std::optional<uint64_t> max_bytes{};
};

struct CloseJetStream {
  void operator()(__jsCtx* context) const;
};
using JetStream = std::unique_ptr<__jsCtx, CloseJetStream>;

// Of a connection that stands. Errors: Unavailable in words.
absl::StatusOr<JetStream> OpenJetStream(const NatsConnection& connection);

// Whether the stream is there and of use: takes kAllSubjects, on disk, acknowledges, has room for
// the largest chunk. Waits for the broker, 5 s at most. Errors, each in one line:
// FailedPrecondition with what is wrong and the command that makes it; PermissionDenied where this
// user may not ask; Unavailable where the broker does not answer.
absl::Status CheckJetStream(const NatsConnection& connection, const std::string& address);

// Makes the stream, or gives one that is there these limits. What it is then, for people. Errors as
// of CheckJetStream, and the broker's own words.
absl::StatusOr<std::string> MakeJetStream(const NatsConnection& connection,
                                          const JetStreamLimits& limits);

// What one call of libnats about `what` came to, in words: PermissionDenied with the server's where
// this user may not ask, Unavailable where nobody answers, NotFound, FailedPrecondition without
// JetStream.
absl::Status JetStreamError(const NatsConnection& connection, int nats_status, int error_code,
                            const std::string& what);

// A connection of which nobody waits for events but for what the server refuses (`refused`, on a
// thread of libnats; may be empty). Errors: of NatsConnection::Open, naming the servers.
absl::StatusOr<std::unique_ptr<NatsConnection>> ConnectNow(
    const NatsOptions& options, std::function<void(const std::string& why)> refused = {});

}  // namespace vcpulse::stream

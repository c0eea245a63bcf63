#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "monitor/stream/net/credentials.h"
#include "monitor/stream/protocol/address.h"
#include "monitor/stream/protocol/agent_session.h"
#include "vcpulse/v1/stream.pb.h"

namespace vcpulse::stream {

// Receives what agents send to a collector, as it becomes durable there.
struct FollowOptions {
  Address address;
  AgentIdentity identity;
  CredentialFiles credentials;  // for a tls address
  bool allow_insecure = false;
  std::string agent_id;  // whose streams; empty: all that it may see
  // Each chunk, with whose it is. An error ends the following.
  std::function<absl::Status(const v1::StreamInfo&, std::span<const uint8_t> chunk)> chunk;
};

// Follows on the calling thread until `stopped` says so (asked each 100 ms). Errors: of the
// options, of the connection (Unavailable: nobody listens, or it was lost), what the collector
// said, that of `chunk`.
absl::Status Follow(const FollowOptions& options, const std::function<bool()>& stopped);

}  // namespace vcpulse::stream

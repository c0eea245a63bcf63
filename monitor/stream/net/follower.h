#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "monitor/stream/net/credentials.h"
#include "monitor/stream/protocol/address.h"
#include "monitor/stream/protocol/hello.h"
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
  // Each time that the collector lets it follow: what became durable before is not sent any more.
  // May be empty, as `say`.
  std::function<void()> welcomed{};
  // One line for people: the collector was lost; somebody answers there, but does not let it
  // follow; it is there again.
  std::function<void(const std::string&)> say{};
  std::chrono::milliseconds first_backoff{200};
  std::chrono::milliseconds longest_backoff{30'000};
};

// Follows on the calling thread until `stopped` says so (asked each 100 ms). Where the collector is
// lost, connects again for ever, with jittered exponential backoff. Errors: of the options; of the
// first connection, those of Connect (sockets.h) and FollowerSession; of a later one where somebody
// must change something first: the collector does not let it follow any more (PermissionDenied), or
// speaks another version (Unimplemented); that of `chunk`.
absl::Status Follow(const FollowOptions& options, const std::function<bool()>& stopped);

}  // namespace vcpulse::stream

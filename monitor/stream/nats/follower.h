#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "monitor/stream/nats/connection.h"

namespace vcpulse::stream {

// Receives what agents publish from now on, as JetStream has it: a consumer of its own, which
// leaves the collectors' alone.
struct NatsFollowOptions {
  NatsOptions server;
  std::string address;                  // of the server, for people
  std::optional<std::string> agent_id;  // nothing: all agents
  // Each chunk, with whose it is. An error ends the following.
  std::function<absl::Status(const std::string& agent_id, std::span<const uint8_t> chunk)> chunk;
  std::function<void(const std::string&)> say;  // one line for people
};

// Follows on the calling thread until `stopped` says so (asked each 100 ms). Where the broker or
// its stream is lost, says so, and goes on behind what came last once it is back, or with all of a
// stream that is new. Errors: of the first connection, of CheckJetStream then, of `chunk`.
absl::Status FollowNats(const NatsFollowOptions& options, const std::function<bool()>& stopped);

}  // namespace vcpulse::stream

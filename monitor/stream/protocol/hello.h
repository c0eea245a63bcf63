#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "vcpulse/v1/stream.pb.h"

namespace vcpulse::stream {

// Versions of the protocol (proto/vcpulse/v1/stream.proto).
inline constexpr uint32_t kMajor = 1;
inline constexpr uint32_t kMinMajor = 1;
inline constexpr uint32_t kMinor = 0;

// Bytes of each name in Hello and Welcome at most.
inline constexpr size_t kMaxNameBytes = 256;

// A text as it may be sent or shown, whatever it holds: one line of valid UTF-8, at most
// `max_bytes` (more is cut off behind a whole character).
std::string OneLine(std::string text, size_t max_bytes);

struct AgentIdentity {
  std::string agent_id;
  std::string host_name;
  std::string boot_id;
  std::string tool_version;
};

// What each Hello of this release says, whoever it is.
v1::Hello HelloOf(const AgentIdentity& identity, v1::Hello::Role role,
                  const v1::ClockSnapshot& clock);

// Whether a collector of this release can answer `hello`. Errors, in words for the peer's owner:
// Unimplemented where no version is common, DataLoss for what no agent or follower says.
absl::Status CheckHello(const v1::Hello& hello);

// Whether an agent can go on with the answer. `last_sent` is the last record of the stream that was
// ever sent; nothing: it is not known. Errors as above, and AlreadyExists where the collector has
// more of the stream than that.
absl::Status CheckWelcome(const v1::Welcome& welcome, std::optional<uint64_t> last_sent);

}  // namespace vcpulse::stream

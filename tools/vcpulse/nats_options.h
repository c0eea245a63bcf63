#pragma once

// What commands say of NATS servers: addresses, who this is to them.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/stream/nats/connection.h"

namespace CLI {
class App;
}

namespace vcpulse::tools {

struct PeerOptions;

// Not given: nothing.
struct NatsText {
  std::optional<std::string> credentials;
  std::optional<std::string> nkey;
  std::optional<std::string> user;
  std::optional<std::string> password_file;
};

// Adds --nats-creds, --nats-nkey, --nats-user and --nats-password-file.
void AddNatsOptions(CLI::App& command, NatsText& text);

// Whether a value is meant as an address of NATS ("nats://...", "nats+tls:...", in any case).
bool IsNatsAddress(const std::string& text);
// The flag that means nothing without one; empty: none was given.
std::string GivenWithoutNats(const NatsText& text);

// `flag` names what the addresses, servers of one cluster, were given with. TLS where an address
// says so, or where --ca or --cert is given. Errors: InvalidArgument in one line.
absl::StatusOr<stream::NatsOptions> ParseNats(const std::string& flag,
                                              const std::vector<std::string>& addresses,
                                              const NatsText& text, const PeerOptions& peer);

}  // namespace vcpulse::tools

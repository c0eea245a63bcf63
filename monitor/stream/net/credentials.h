#pragma once

// monitor/stream/net is streaming on real sockets: the uplink of an agent and the collector. Asio
// and OpenSSL are in its .cc files alone.

#include <string>

#include "absl/status/status.h"

namespace vcpulse::stream {

// Files of TLS, PEM. All three, or none. Read anew for each connection of an agent, and by
// Collector::ReloadCredentials.
struct CredentialFiles {
  std::string certificate;  // own, with intermediate ones behind it
  std::string key;
  std::string authorities;  // that the peer's certificate must come from
  // CRLs: certificates that are not taken though they come from there. Each authority needs one.
  // May be empty.
  std::string revoked{};

  bool any() const { return !certificate.empty() || !key.empty() || !authorities.empty(); }
};

// Whether they can be read and belong together, and are valid now. Errors: InvalidArgument,
// NotFound, ... in one line that names the file and what to do. No secret is ever in a message.
absl::Status CheckCredentials(const CredentialFiles& files);
// The same of those that are named alone, where not all have to be.
absl::Status CheckNamedCredentials(const CredentialFiles& files);

// The name of this host as others know it (FQDN where the resolver has one, else its host name).
std::string OwnHostName();

}  // namespace vcpulse::stream

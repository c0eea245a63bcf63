#pragma once

// What `vcpulse record --to`, `vcpulse replay --to` and `vcpulse tail ADDR` say of a collector:
// flags, and what they mean.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/stream/net/credentials.h"
#include "monitor/stream/net/record_uplink.h"
#include "monitor/stream/protocol/address.h"
#include "tools/vcpulse/nats_options.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace vcpulse::tools {

// How this end shows itself to the other. Not given: nothing.
struct PeerOptions {
  std::optional<std::string> agent_id;
  std::optional<std::string> certificate;
  std::optional<std::string> key;
  std::optional<std::string> authorities;
  std::optional<std::string> revoked;  // of `collect`
  bool insecure = false;
};

// Adds --agent-id, --cert, --key, --ca and --insecure.
void AddPeerOptions(CLI::App& command, PeerOptions& options);
// Adds --cert, --key, --ca and --insecure alone.
void AddCredentialOptions(CLI::App& command, PeerOptions& options);

// Of `record`.
struct UplinkOptions {
  std::vector<std::string> to;
  PeerOptions peer;
  NatsText nats;
  std::optional<std::string> spool_dir;
  std::optional<std::string> spool_size;
  std::optional<std::string> spool_margin;
  std::optional<std::string> drain;
  bool require_collector = false;
  bool require_delivery = false;
  bool in_memory = false;  // there is no spool on disk
};

// Adds --to, those of AddPeerOptions and AddNatsOptions, --spool-dir, --spool-margin, --spool-size,
// --require-collector,
// --require-delivery and --drain.
void AddUplinkOptions(CLI::App& command, UplinkOptions& options);

// Whether a value of --to is an address ("unix:...", "tcp:...", "tls:...", "nats://...") and not a
// time.
bool LooksLikeAddress(const std::string& text);

// ParseAddress or ParseDestination.
using AddressParser = absl::StatusOr<stream::Address> (*)(const std::string& text);

// `flag` names what the addresses were given with. Errors: InvalidArgument in one line.
absl::StatusOr<std::vector<stream::Address>> ParseAddresses(const std::string& flag,
                                                            const std::vector<std::string>& texts,
                                                            AddressParser parse);

// The files of --cert, --key and --ca: all three where an address is tls, else none. Errors:
// InvalidArgument in one line.
absl::StatusOr<stream::CredentialFiles> CredentialsFor(
    const std::vector<stream::Address>& addresses, const PeerOptions& options);

// Who this is, by --agent-id or this host's name. `root` is where /proc is. Errors: InvalidArgument
// where that may not name an agent.
absl::StatusOr<stream::AgentIdentity> IdentityOf(const PeerOptions& options,
                                                 const std::string& root);

// Nothing without --to. Errors: InvalidArgument in one line, for values that cannot be and for
// options that mean nothing without --to.
absl::StatusOr<std::optional<stream::RecordUplink::Options>> ParseUplink(
    const UplinkOptions& options, const std::string& root);

// Where the spool is by default: $STATE_DIRECTORY/spool under systemd, /var/lib/vcpulse/spool for
// root, else $XDG_STATE_HOME/vcpulse/spool or ~/.local/state/vcpulse/spool. Errors:
// FailedPrecondition where none of them is known.
absl::StatusOr<std::string> DefaultSpoolDirectory();

}  // namespace vcpulse::tools

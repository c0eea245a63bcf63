#pragma once

// Of the collector: who may send as whom, and who may follow whom. Pure.

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace vcpulse::stream {

// The agent ids that a user may use over a unix socket.
using AgentIdsOfUsers = std::map<uid_t, std::vector<std::string>>;

// Who a peer is, as far as its connection proves it. The agent ids that it may use are `names`.
struct Identity {
  enum class Proof {
    kNone,         // plain TCP, and root or the collector's own user: any agent id
    kUser,         // of a unix socket
    kCertificate,  // names are its subjectAltName, DNS or URI
  };
  Proof proof = Proof::kNone;
  uid_t uid = 0;  // of kUser
  std::vector<std::string> names{};
};

// The user of the other end of a unix socket; nothing where it may not connect.
std::optional<Identity> IdentityOfUser(uid_t uid, const AgentIdsOfUsers& allowed);

// Whether a peer may call itself that. Errors: PermissionDenied, in words for it.
absl::Status CheckName(const Identity& identity, const std::string& agent_id);

// Whose chunks a follower that calls itself `id` is to see; empty: all. It asked for those of
// `wanted`. Where its identity is proved these are its own names' alone, unless it is one of
// `allowed`. Errors: PermissionDenied, in words for it.
absl::StatusOr<std::string> WhomToFollow(const Identity& identity, const std::string& id,
                                         const std::string& wanted,
                                         const std::vector<std::string>& allowed);

}  // namespace vcpulse::stream

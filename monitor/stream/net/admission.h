#pragma once

// Of the collector: who may send, and who may follow whom. Pure.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace vcpulse::stream {

// The names of a peer's certificate (subjectAltName, DNS or URI); nothing where it came over a
// plain address, on which who may connect at all may take any name.
using CertifiedNames = std::optional<std::vector<std::string>>;

// Whether the user of the other end of a unix socket may connect: this one, root, or one of these.
bool MayConnect(uid_t uid, const std::vector<uid_t>& allowed);

// Whether a peer may call itself that. Errors: PermissionDenied, in words for it.
absl::Status CheckName(const CertifiedNames& names, const std::string& agent_id);

// Whose chunks a follower that calls itself `id` is to see; empty: all. It asked for those of
// `wanted`. With a certificate it is its own alone, unless it is one of `allowed`. Errors:
// PermissionDenied, in words for it.
absl::StatusOr<std::string> WhomToFollow(const CertifiedNames& names, const std::string& id,
                                         const std::string& wanted,
                                         const std::vector<std::string>& allowed);

}  // namespace vcpulse::stream

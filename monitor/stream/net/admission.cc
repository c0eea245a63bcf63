#include "monitor/stream/net/admission.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace vcpulse::stream {
namespace {

// DNS names do not tell upper from lower case; URIs do, and hold a colon. A name that is not
// written as in the certificate is taken in lower case alone, so that nobody has many.
bool IsSameName(const std::string& certified, const std::string& claimed) {
  if (certified == claimed) return true;
  const bool is_lower = std::ranges::none_of(claimed, absl::ascii_isupper);
  return is_lower && claimed.find(':') == std::string::npos &&
         absl::EqualsIgnoreCase(certified, claimed);
}

bool IsOneOf(const Identity& identity, const std::string& agent_id) {
  return std::ranges::any_of(identity.names, [&](const std::string& name) {
    return identity.proof == Identity::Proof::kCertificate ? IsSameName(name, agent_id)
                                                           : name == agent_id;
  });
}

}  // namespace

std::optional<Identity> IdentityOfUser(uid_t uid, const AgentIdsOfUsers& allowed) {
  if (uid == 0 || uid == geteuid()) return Identity{};
  const auto found = allowed.find(uid);
  if (found == allowed.end()) return std::nullopt;
  return Identity{.proof = Identity::Proof::kUser, .uid = uid, .names = found->second};
}

absl::Status CheckName(const Identity& identity, const std::string& agent_id) {
  if (identity.proof == Identity::Proof::kNone || IsOneOf(identity, agent_id)) {
    return absl::OkStatus();
  }
  if (identity.proof == Identity::Proof::kUser) {
    return absl::PermissionDeniedError(absl::StrCat("user ", identity.uid, " may not be agent '",
                                                    agent_id, "' (collect --allow-uid ",
                                                    identity.uid, "=", agent_id, ")"));
  }
  std::string shown = identity.names.empty() ? "none" : identity.names.front();
  if (identity.names.size() > 1) {
    absl::StrAppend(&shown, " and ", identity.names.size() - 1, " more");
  }
  return absl::PermissionDeniedError(
      absl::StrCat("the certificate is not that of agent '", agent_id,
                   "': its names (subjectAltName, DNS or URI) are: ", shown));
}

absl::StatusOr<std::string> WhomToFollow(const Identity& identity, const std::string& id,
                                         const std::string& wanted,
                                         const std::vector<std::string>& allowed) {
  if (identity.proof == Identity::Proof::kNone || std::ranges::find(allowed, id) != allowed.end()) {
    return wanted;
  }
  const std::string& whom = wanted.empty() ? id : wanted;
  if (IsOneOf(identity, whom)) return whom;
  return absl::PermissionDeniedError(absl::StrCat(
      "'", id, "' may only follow the agent ids that it may use itself (collect --allow-follower ",
      id, " lets it follow all)"));
}

}  // namespace vcpulse::stream

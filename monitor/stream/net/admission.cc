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

}  // namespace

bool MayConnect(uid_t uid, const std::vector<uid_t>& allowed) {
  return uid == 0 || uid == geteuid() || std::ranges::find(allowed, uid) != allowed.end();
}

absl::Status CheckName(const CertifiedNames& names, const std::string& agent_id) {
  if (!names) return absl::OkStatus();
  if (std::ranges::any_of(*names, [&](const auto& name) { return IsSameName(name, agent_id); })) {
    return absl::OkStatus();
  }
  std::string shown = names->empty() ? "none" : names->front();
  if (names->size() > 1) absl::StrAppend(&shown, " and ", names->size() - 1, " more");
  return absl::PermissionDeniedError(
      absl::StrCat("the certificate is not that of agent '", agent_id,
                   "': its names (subjectAltName, DNS or URI) are: ", shown));
}

absl::StatusOr<std::string> WhomToFollow(const CertifiedNames& names, const std::string& id,
                                         const std::string& wanted,
                                         const std::vector<std::string>& allowed) {
  if (!names || std::ranges::find(allowed, id) != allowed.end()) return wanted;
  const std::string& whom = wanted.empty() ? id : wanted;
  if (CheckName(names, whom).ok()) return whom;
  return absl::PermissionDeniedError(absl::StrCat(
      "'", id, "' may follow the names of its certificate alone (collect --allow-follower ", id,
      " lets it follow all)"));
}

}  // namespace vcpulse::stream

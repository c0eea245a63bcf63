#pragma once

// Profiles that were measured on a host and are installed there (`vcpulse calibrate --install`):
// ROOT/etc/vcpulse/profiles/*.json.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/host.h"
#include "monitor/profile/profile.h"

namespace vcpulse::profile {

// `root` as in Discovery.
std::string InstalledFolder(const std::string& root);

// All of them, by the names of their files; none where there is no such folder. Errors: those of
// Load.
absl::StatusOr<std::vector<Profile>> Installed(const std::string& root);

// The profile for the CPU of this host: the last one installed that names this very model, else
// ChooseFor. Errors: as Installed, for a recording must not be judged by other numbers than its
// host was given.
absl::StatusOr<Profile> ChooseForHost(const std::string& root);

// Writes it as NAME.json, in place of an older one, and makes the folder where there is none.
// Returns the path. Errors: of the system, naming the path.
absl::StatusOr<std::string> Install(const Profile& profile, const std::string& root);

}  // namespace vcpulse::profile

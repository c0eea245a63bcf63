#pragma once

// Profiles that are installed on a host (`vcpulse calibrate --install`):
// ROOT/etc/vcpulse/profiles/*.json. `root` as in Discovery.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/profile/profile.h"

namespace vcpulse::profile {

std::string InstalledFolder(const std::string& root);

// All of them, by the names of their files; none where there is no such folder. Errors:
// PermissionDenied where this user may not look there; those of Load.
absl::StatusOr<std::vector<Profile>> Installed(const std::string& root);

struct HostProfile {
  Profile profile;
  std::string note;  // a line for people where installed ones could not be looked for; else empty
};

// The profile that says most exactly that it is for the CPU of this host (its stepping, its model,
// its vendor); of two alike an installed one, and of these the last. A user who may not look into
// the folder gets a built-in one, and the note. Errors: as Installed otherwise, for a recording
// must not be judged by other numbers than its host was given.
absl::StatusOr<HostProfile> ChooseForHost(const std::string& root);

// The installed profile of that name, else as Load. Errors: as Load; as Installed where it is not
// built in.
absl::StatusOr<Profile> LoadOnHost(const std::string& name_or_file, const std::string& root);

// Makes the folder where there is none, and sees whether it can be written. Errors: of the system,
// naming the path.
absl::Status CanInstall(const std::string& root);

// Writes it as NAME.json, in place of an older one, to be read by every user. Returns the path.
// Errors: of CanInstall; of the system, naming the path; FailedPrecondition where another installed
// profile is chosen all the same.
absl::StatusOr<std::string> Install(const Profile& profile, const std::string& root);

}  // namespace vcpulse::profile

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "monitor/profile/profile.h"

namespace vcpulse::profile {

// Parse, with the profiles that "base" may name; the first is the base of what names none. Where
// there is none, the numbers of core::Profile{} are, without an origin.
absl::StatusOr<Profile> ParseOn(std::string_view json, const std::string& source,
                                std::span<const Profile> bases);

}  // namespace vcpulse::profile

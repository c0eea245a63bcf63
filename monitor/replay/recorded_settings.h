#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "monitor/core/classify.h"
#include "monitor/profile/profile.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::replay {

// What ticks are judged with.
struct Settings {
  core::ClassifierChoice choice = core::ClassifierChoice::kAuto;
  profile::Profile profile;
  std::string remark{};  // for people, where the timeline does not say all of it
};

// The settings that `session` names. `kept` is the stream's Profile record, null where it has none
// (timelines before profiles, a damaged beginning): then it is the built-in profile of that name,
// or "generic". The four numbers that a session holds count in any case. Errors: InvalidArgument
// where the classifier is of a later release, or the kept profile cannot be read.
absl::StatusOr<Settings> SettingsOf(const v1::Session& session, const v1::Profile* kept);

// The opposite of the above: what a session says of them, and the record that keeps the profile.
void SetClassifier(core::ClassifierChoice choice, const core::Profile& values,
                   const std::string& profile_name, v1::Session& session);
v1::TimelineRecord KeepProfile(const profile::Profile& profile);

// What a method of residency cannot see, for the session record; empty where there is no method.
std::string_view BlindSpotOf(v1::ResidencyMethod method);

}  // namespace vcpulse::replay

#include "monitor/replay/recorded_settings.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace vcpulse::replay {
namespace {

// The name of a recording from before there was a choice.
constexpr const char* kFirstClassifier = "ipc-bands";

const profile::Profile& BuiltInOrGeneric(const std::string& name) {
  const auto found = std::ranges::find(profile::BuiltIn(), name, &profile::Profile::name);
  if (found != profile::BuiltIn().end()) return *found;
  return *std::ranges::find(profile::BuiltIn(), "generic", &profile::Profile::name);
}

absl::StatusOr<profile::Profile> ParseKept(const v1::Profile& kept) {
  auto parsed = profile::Parse(kept.json(), absl::StrCat("profile ", kept.name()));
  if (parsed.ok()) parsed->source = kept.source();  // where it came from, not where it was kept
  return parsed;
}

}  // namespace

absl::StatusOr<Settings> SettingsOf(const v1::Session& session, const v1::Profile* kept) {
  const v1::ClassifierSettings& recorded = session.classifier();
  Settings settings;
  const std::string& name = recorded.name();
  const auto choice = core::ParseClassifierChoice(name.empty() ? kFirstClassifier : name);
  if (!choice) {
    return absl::InvalidArgumentError(
        absl::StrCat("it was judged by classifier '", name, "', which this vcpulse does not know"));
  }
  settings.choice = *choice;
  if (kept != nullptr) {
    auto profile = ParseKept(*kept);
    if (!profile.ok()) return profile.status();
    settings.profile = *std::move(profile);
  } else {
    settings.profile = BuiltInOrGeneric(recorded.profile());
    settings.remark = absl::StrCat(
        "it keeps no profile: ",
        settings.profile.name == recorded.profile() ? "the built-in profile of that name, "
                                                    : "profile ",
        settings.profile.name, " is used, with the thresholds of its session");
  }
  // A kept profile has these numbers as they were.
  if (kept != nullptr || !session.has_classifier()) return settings;
  core::Profile& values = settings.profile.values;
  values.presence.halted_enter = recorded.halted_enter();
  values.presence.halted_leave = recorded.halted_leave();
  values.ipc_bands.spinning_below = recorded.spinning_below();
  values.ipc_bands.productive_from = recorded.productive_from();
  if (absl::Status status = profile::Check(values); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the thresholds of its session: ", status.message()));
  }
  return settings;
}

std::string_view BlindSpotOf(v1::ResidencyMethod method) {
  switch (method) {
    case v1::RESIDENCY_METHOD_REF_CYCLES:
      return "time in guest mode only, without the host's work for the guest (exits, polling for "
             "a halted vCPU)";
    case v1::RESIDENCY_METHOD_MAX_FREQUENCY:
      return "a lower bound where the core runs slower";
    case v1::RESIDENCY_METHOD_TIME_ENABLED:
      return "an upper bound, since it includes the host's work for the guest (exits, polling)";
    case v1::RESIDENCY_METHOD_HIGHEST_RATE:
      return "too high until the first busy tick";
    default:
      return "";
  }
}

void SetClassifier(core::ClassifierChoice choice, const core::Profile& values,
                   const std::string& profile_name, v1::Session& session) {
  v1::ClassifierSettings& classifier = *session.mutable_classifier();
  classifier.set_name(std::string(core::ToString(choice)));
  classifier.set_halted_enter(values.presence.halted_enter);
  classifier.set_halted_leave(values.presence.halted_leave);
  classifier.set_spinning_below(values.ipc_bands.spinning_below);
  classifier.set_productive_from(values.ipc_bands.productive_from);
  classifier.set_profile(profile_name);
}

v1::TimelineRecord KeepProfile(const profile::Profile& profile) {
  v1::TimelineRecord record;
  v1::Profile& kept = *record.mutable_profile();
  kept.set_name(profile.name);
  kept.set_source(profile.source);
  kept.set_json(profile::ToJson(profile));
  return record;
}

}  // namespace vcpulse::replay

#include "tools/vcpulse/classifier_options.h"

#include <array>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "monitor/profile/installed.h"

namespace vcpulse::tools {
namespace {

void Override(const std::optional<double>& given, const std::string& field, double& value,
              profile::Profile& profile) {
  if (!given) return;
  value = *given;
  profile.origins[field] = "command line";
}

// After numbers of the command line came in: a file's own were checked when it was read, so what is
// wrong now is one of the four.
absl::Status CheckThresholds(const core::Profile& profile) {
  const core::PresenceThresholds& presence = profile.presence;
  if (!(presence.halted_enter >= 0 && presence.halted_enter <= presence.halted_leave &&
        presence.halted_leave < 1)) {
    return absl::InvalidArgumentError(
        "--halted-enter and --halted-leave are shares: 0 <= enter <= leave < 1");
  }
  if (!profile::Check(profile).ok()) {
    return absl::InvalidArgumentError(
        "--spinning-below and --productive-from are IPCs: 0 <= spinning-below <= productive-from "
        "<= 100");
  }
  return absl::OkStatus();
}

absl::StatusOr<profile::Profile> NamedProfile(const std::string& name, const std::string& root) {
  absl::StatusOr<profile::Profile> loaded = profile::LoadOnHost(name, root);
  if (!loaded.ok()) {
    return absl::Status(loaded.status().code(),
                        absl::StrCat("--profile: ", loaded.status().message()));
  }
  return loaded;
}

// Adds the options; `choice` and `profile` are the defaults that --help shows.
void AddOptions(CLI::App& command, ClassifierOptions& options, const std::string& choice,
                const std::string& profile) {
  const std::array<CLI::Option*, 6> all = {
      command
          .add_option("--classifier", options.choice,
                      absl::StrCat("evidence (rules over several counters), ipc-bands (a hint from "
                                   "IPC alone), or auto: evidence where its events are counted ",
                                   choice))
          ->type_name("auto|evidence|ipc-bands"),
      command
          .add_option(
              "--profile", options.profile,
              absl::StrCat("thresholds: a name from `vcpulse list profiles`, or a file ", profile))
          ->type_name("PROFILE|FILE"),
      command.add_option("--halted-enter", options.halted_enter,
                         "HALTED below this residency [as in the profile: 0.02]"),
      command.add_option("--halted-leave", options.halted_leave,
                         "HALTED lasts up to this residency [0.04]"),
      command.add_option("--spinning-below", options.spinning_below,
                         "ipc-bands: SPINNING below this IPC [0.75]"),
      command.add_option("--productive-from", options.productive_from,
                         "ipc-bands: PRODUCTIVE from this IPC on [1.0]"),
  };
  for (CLI::Option* option : all) option->group(kBandsGroup);
}

absl::Status TakeNumbers(const ClassifierOptions& options, profile::Profile& profile) {
  core::PresenceThresholds& presence = profile.values.presence;
  core::IpcBandsThresholds& ipc_bands = profile.values.ipc_bands;
  Override(options.halted_enter, "halted_enter", presence.halted_enter, profile);
  Override(options.halted_leave, "halted_leave", presence.halted_leave, profile);
  Override(options.spinning_below, "spinning_below", ipc_bands.spinning_below, profile);
  Override(options.productive_from, "productive_from", ipc_bands.productive_from, profile);
  return CheckThresholds(profile.values);
}

}  // namespace

void AddClassifierOptions(CLI::App& command, ClassifierOptions& options,
                          const std::string& default_profile) {
  AddOptions(command, options, "[auto]", default_profile);
}

void AddReclassifierOptions(CLI::App& command, ClassifierOptions& options) {
  AddOptions(command, options, "[as recorded]", "[that of the timeline]");
}

absl::StatusOr<ResolvedClassifier> Resolve(const ClassifierOptions& options,
                                           const std::optional<std::string>& root) {
  ResolvedClassifier resolved;
  if (!options.profile && root) {
    auto chosen = profile::ChooseForHost(*root);
    if (!chosen.ok()) return chosen.status();
    resolved = {.profile = std::move(chosen->profile), .note = std::move(chosen->note)};
  } else {
    auto named = NamedProfile(options.profile.value_or("generic"), root.value_or("/"));
    if (!named.ok()) return named.status();
    resolved = {.profile = *std::move(named)};
  }
  ClassifierOptions others = options;
  others.profile.reset();  // is chosen
  return ResolveOver(others, std::move(resolved));
}

absl::StatusOr<ResolvedClassifier> ResolveOver(const ClassifierOptions& options,
                                               ResolvedClassifier recorded) {
  if (options.choice) {
    const auto choice = core::ParseClassifierChoice(*options.choice);
    if (!choice) {
      return absl::InvalidArgumentError(absl::StrCat("--classifier: '", *options.choice,
                                                     "' is none of auto, evidence, ipc-bands"));
    }
    recorded.choice = *choice;
  }
  if (options.profile) {
    absl::StatusOr<profile::Profile> chosen = NamedProfile(*options.profile, "/");
    if (!chosen.ok()) return chosen.status();
    recorded.profile = *std::move(chosen);
  }
  if (absl::Status status = TakeNumbers(options, recorded.profile); !status.ok()) return status;
  return recorded;
}

}  // namespace vcpulse::tools

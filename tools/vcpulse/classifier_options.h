#pragma once

// Which classifier judges, and with which numbers: the same options for every command that judges.

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kvm/host.h"
#include "monitor/core/classify.h"
#include "monitor/profile/profile.h"

namespace CLI {
class App;
}

namespace vcpulse::tools {

// Of --help: what says how vCPUs are judged.
inline constexpr const char* kBandsGroup = "Bands (docs/bands.md)";

struct ClassifierOptions {
  std::optional<std::string> choice;   // nothing: auto
  std::optional<std::string> profile;  // a name or a file
  // In place of the profile's numbers.
  std::optional<double> halted_enter;
  std::optional<double> halted_leave;
  std::optional<double> spinning_below;
  std::optional<double> productive_from;
};

// Adds --classifier, --profile and one option for each of the four numbers. `default_profile` says
// for --help which profile it is where none is named, as "[generic]".
void AddClassifierOptions(CLI::App& command, ClassifierOptions& options,
                          const std::string& default_profile);

// The same for a command that reads a timeline: what is not given is as the timeline was judged.
void AddReclassifierOptions(CLI::App& command, ClassifierOptions& options);

struct ResolvedClassifier {
  core::ClassifierChoice choice = core::ClassifierChoice::kAuto;
  profile::Profile profile;  // the numbers from the command line have that as their origin
  std::string note{};        // a line for people, where there is one
};

// Where no profile is named, the one of the host at `root`, or "generic" without a host. Errors:
// one line that names the option, or the installed profile that is wrong.
absl::StatusOr<ResolvedClassifier> Resolve(const ClassifierOptions& options,
                                           const std::optional<std::string>& root);

// The same, where what is not given is as in `recorded`.
absl::StatusOr<ResolvedClassifier> ResolveOver(const ClassifierOptions& options,
                                               ResolvedClassifier recorded);

}  // namespace vcpulse::tools

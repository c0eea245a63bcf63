// `vcpulse list profiles`: the profiles that are built in, and which of them is this host's.
#include "tools/vcpulse/list_profiles.h"

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/json.h"
#include "kvm/host.h"
#include "monitor/profile/profile.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/target_options.h"

namespace vcpulse::tools {
namespace {

namespace json = boost::json;

std::string CpusOf(const profile::Profile& profile) {
  return profile.cpu ? profile.cpu->ToText() : "any";
}

std::string TableOf(const profile::Profile& chosen) {
  std::vector<std::vector<std::string>> cells = {{"", "PROFILE", "CPUS", "DESCRIPTION"}};
  for (const profile::Profile& profile : profile::BuiltIn()) {
    cells.push_back({profile.name == chosen.name ? "*" : "", profile.name, CpusOf(profile),
                     profile.description});
  }
  return absl::StrCat(Aligned(cells, 0), "\n* chosen on this host\n");
}

// One profile per line, so that a person can read it and grep it.
std::string JsonOf(const profile::Profile& chosen) {
  std::string text = "[";
  for (const profile::Profile& profile : profile::BuiltIn()) {
    json::object object;
    object["name"] = JsonText(profile.name);
    object["cpus"] = profile.cpu ? json::value(JsonText(CpusOf(profile))) : nullptr;
    object["description"] = JsonText(profile.description);
    object["chosen"] = profile.name == chosen.name;
    absl::StrAppend(&text, text.size() > 1 ? ",\n " : "", json::serialize(object));
  }
  return text + "]\n";
}

}  // namespace

int RunListProfiles(const ListProfilesOptions& options) {
  if (absl::Status status = CheckRoot(options.root); !status.ok()) return Fail(status);
  std::string text;
  if (options.name) {
    const absl::StatusOr<profile::Profile> profile = profile::Load(*options.name);
    if (!profile.ok()) return Fail(profile.status());
    text = profile::ToJson(*profile);
  } else {
    const kvm::CpuIdentity cpu = kvm::ReadCpuIdentity(options.root);
    const profile::Profile& chosen = profile::ChooseFor(cpu);
    text = options.json ? JsonOf(chosen) : TableOf(chosen);
  }
  return WriteStdout(text);
}

}  // namespace vcpulse::tools

#include "monitor/profile/parse.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "kvm/events/closest_name.h"
#include "monitor/profile/exact_json.h"
#include "monitor/profile/fields.h"
#include "monitor/profile/json_fields.h"
#include "monitor/profile/read_cpu_match.h"

namespace vcpulse::profile {
namespace {

namespace json = boost::json;

constexpr size_t kLongestName = 64;
constexpr size_t kLongestText = 1000;

// Those that core::FindSlots knows; each with whether it counts cycles.
struct KnownPauseEvent {
  std::string_view name;
  bool in_cycles = false;
};
constexpr std::array<KnownPauseEvent, 3> kPauseEvents = {{
    {"cpu_clk_unhalted.pause", true},
    {"misc_retired.pause_inst", false},
    {"rob_misc_events.pause_inst", false},
}};

const KnownPauseEvent* FindPauseEvent(std::string_view name) {
  const auto event = std::ranges::find(kPauseEvents, name, &KnownPauseEvent::name);
  return event == kPauseEvents.end() ? nullptr : &*event;
}

using Keys = std::vector<std::string>;

absl::Status ReadThreshold(const Field& field, const json::value& value, Profile& profile) {
  const std::string path = absl::StrCat("thresholds.", ToAbsl(field.name));
  const auto object = ReadObject(value, path, Keys{"value", "origin"});
  if (!object.ok()) return object.status();
  const json::value* number = Find(**object, "value");
  if (number == nullptr) return WrongField(path + ".value", "is missing");
  std::optional<double> threshold;
  if (!number->is_null()) {
    const auto read = ReadNumber(*number, path + ".value");
    if (!read.ok()) return read.status();
    threshold = *read;
  } else if (!field.MayBeOff()) {
    return WrongField(path + ".value", "null is no number, and this one cannot be off");
  }
  const auto origin = ReadText(**object, path, "origin", kLongestText);
  if (!origin.ok()) return origin.status();
  field.Set(profile.values, threshold);
  profile.origins[std::string(field.name)] = *origin;
  return absl::OkStatus();
}

absl::Status ReadThresholds(const json::value& value, Profile& profile) {
  Keys known;
  for (const Field& field : Fields()) known.emplace_back(field.name);
  const json::object* object = value.if_object();
  if (object == nullptr) {
    return WrongField("thresholds", absl::StrCat(Described(value), " is no object"));
  }
  if (absl::Status status = CheckKeys(*object, "thresholds", known); !status.ok()) return status;
  for (const Field& field : Fields()) {
    const json::value* threshold = Find(*object, field.name);
    if (threshold == nullptr) continue;
    if (absl::Status status = ReadThreshold(field, *threshold, profile); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> ReadSpinIpc(const json::object& object, const std::string& path,
                                   std::string_view key) {
  const std::string here = Join(path, key);
  const json::value* value = Find(object, key);
  if (value == nullptr) return WrongField(here, "is missing");
  auto ipc = ReadNumber(*value, here);
  if (ipc.ok() && !SpinIpcLimits().Allow(*ipc)) {
    return WrongField(here,
                      absl::StrCat(NumberText(*ipc), " is not ", ToAbsl(SpinIpcLimits().text)));
  }
  return ipc;
}

absl::Status ReadSpinIpcs(const json::value& value, Profile& profile) {
  constexpr size_t kMost = core::EvidenceThresholds::kMostSpinIpcs;
  const json::array* ranges = value.if_array();
  if (ranges == nullptr) {
    return WrongField("spin_ipc", absl::StrCat(Described(value), " is no list"));
  }
  if (ranges->size() > kMost) {
    return WrongField("spin_ipc", absl::StrCat(ranges->size(), " ranges: at most ", kMost));
  }
  core::EvidenceThresholds& evidence = profile.values.evidence;
  evidence.spin_ipc = {};
  evidence.spin_ipcs = 0;
  std::erase_if(profile.origins,
                [](const auto& origin) { return origin.first.starts_with("spin_ipc["); });
  for (const json::value& range : *ranges) {
    const std::string path = absl::StrCat("spin_ipc[", evidence.spin_ipcs, "]");
    const auto object = ReadObject(range, path, Keys{"from", "to", "origin"});
    if (!object.ok()) return object.status();
    const auto from = ReadSpinIpc(**object, path, "from");
    if (!from.ok()) return from.status();
    const auto to = ReadSpinIpc(**object, path, "to");
    if (!to.ok()) return to.status();
    if (*from > *to) {
      return WrongField(path + ".from",
                        absl::StrCat(NumberText(*from), " is above to, ", NumberText(*to)));
    }
    const auto origin = ReadText(**object, path, "origin", kLongestText);
    if (!origin.ok()) return origin.status();
    evidence.spin_ipc.at(evidence.spin_ipcs++) = {.from = *from, .to = *to};
    profile.origins[path] = *origin;
  }
  return absl::OkStatus();
}

absl::Status ReadPause(const json::value& value, Profile& profile) {
  profile.pause.reset();
  profile.origins.erase("pause");
  if (value.is_null()) return absl::OkStatus();
  const auto object = ReadObject(value, "pause", Keys{"event", "config", "origin"});
  if (!object.ok()) return object.status();
  const auto name = ReadText(**object, "pause", "event", kLongestName);
  if (!name.ok()) return name.status();
  if (FindPauseEvent(*name) == nullptr) {
    Keys names;
    for (const KnownPauseEvent& event : kPauseEvents) names.emplace_back(event.name);
    return WrongField("pause.event",
                      absl::StrCat(Quoted(*name), " is none of ", absl::StrJoin(names, ", ")));
  }
  const json::value* config = Find(**object, "config");
  if (config == nullptr) return WrongField("pause.config", "is missing");
  const auto code = ReadCode(*config, "pause.config", /*highest=*/0xffff'ffff);
  if (!code.ok()) return code.status();
  const auto origin = ReadText(**object, "pause", "origin", kLongestText);
  if (!origin.ok()) return origin.status();
  profile.pause = PauseEvent{.name = *name, .config = *code};
  profile.origins["pause"] = *origin;
  return absl::OkStatus();
}

// The profile to begin with.
absl::StatusOr<Profile> BaseOf(const json::object& top, std::span<const Profile> bases) {
  const json::value* named = Find(top, "base");
  if (named == nullptr) return bases.empty() ? Profile() : bases.front();
  const auto name = ReadText(top, "", "base", kLongestName);
  if (!name.ok()) return name.status();
  const auto base = std::ranges::find(bases, *name, &Profile::name);
  if (base != bases.end()) return *base;
  Keys names;
  for (const Profile& known : bases) names.push_back(known.name);
  const std::string nearest = kvm::ClosestName(*name, names);
  return WrongField("base",
                    absl::StrCat(Quoted(*name), " is no built-in profile",
                                 nearest.empty() ? "; `vcpulse list profiles` shows them"
                                                 : absl::StrCat("; is '", nearest, "' meant?")));
}

absl::Status CheckAll(const Profile& profile) {
  if (absl::Status status = Check(profile.values); !status.ok()) return status;
  if (!profile.pause || profile.values.evidence.pause_cycles_each) return absl::OkStatus();
  if (FindPauseEvent(profile.pause->name)->in_cycles) return absl::OkStatus();
  return WrongField("pause.event",
                    absl::StrCat(Quoted(profile.pause->name),
                                 " counts instructions: thresholds.pause_cycles_each must say how "
                                 "many cycles one takes"));
}

absl::StatusOr<Profile> ReadProfile(std::string_view text, std::span<const Profile> bases) {
  const auto value = ParseExactJson(text);
  if (!value.ok()) return value.status();
  const json::object* top = value->if_object();
  if (top == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(Described(*value), " is no profile: it is an object with a name"));
  }
  const Keys known = {"name", "description", "base", "cpu", "thresholds", "spin_ipc", "pause"};
  if (absl::Status status = CheckKeys(*top, "", known); !status.ok()) return status;
  absl::StatusOr<Profile> profile = BaseOf(*top, bases);
  if (!profile.ok()) return profile.status();
  auto name = ReadText(*top, "", "name", kLongestName);
  if (!name.ok()) return name.status();
  profile->name = *std::move(name);
  profile->description.clear();
  profile->cpu.reset();
  if (Find(*top, "description") != nullptr) {
    auto description = ReadText(*top, "", "description", kLongestText);
    if (!description.ok()) return description.status();
    profile->description = *std::move(description);
  }
  if (const json::value* cpu = Find(*top, "cpu")) {
    auto read = ReadCpuMatch(*cpu);
    if (!read.ok()) return read.status();
    profile->cpu = *std::move(read);
  }
  using Reader = absl::Status (*)(const json::value&, Profile&);
  constexpr std::array<std::pair<std::string_view, Reader>, 3> kReaders = {{
      {"thresholds", ReadThresholds},
      {"spin_ipc", ReadSpinIpcs},
      {"pause", ReadPause},
  }};
  for (const auto& [key, read] : kReaders) {
    const json::value* part = Find(*top, key);
    if (part == nullptr) continue;
    if (absl::Status status = read(*part, *profile); !status.ok()) return status;
  }
  if (absl::Status status = CheckAll(*profile); !status.ok()) return status;
  return profile;
}

}  // namespace

absl::StatusOr<Profile> ParseOn(std::string_view json, const std::string& source,
                                std::span<const Profile> bases) {
  if (json.size() > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": is more than 1 MiB, and no profile"));
  }
  absl::StatusOr<Profile> profile = ReadProfile(json, bases);
  if (!profile.ok()) {
    return absl::Status(profile.status().code(),
                        absl::StrCat(source, ": ", profile.status().message()));
  }
  profile->source = source;
  return profile;
}

absl::Status Check(const core::Profile& values) {
  const Fault fault = FindFault(values);
  if (fault.text.empty()) return absl::OkStatus();
  return WrongField(absl::StrCat("thresholds.", fault.field, ".value"), fault.text);
}

}  // namespace vcpulse::profile

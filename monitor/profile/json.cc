// Profiles as JSON: read, and written again.
#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "monitor/core/event_slots.h"
#include "monitor/profile/fields.h"
#include "monitor/profile/json_node.h"
#include "monitor/profile/profile.h"

namespace vcpulse::profile {
namespace {

constexpr size_t kLongestName = 64;
constexpr size_t kLongestText = 1000;

// Those of CPU models that core::FindSlots knows.
constexpr std::array<std::string_view, 3> kPauseEvents = {
    "cpu_clk_unhalted.pause", "misc_retired.pause_inst", "rob_misc_events.pause_inst"};

void ReadThresholds(const Node& node, Profile& profile) {
  std::vector<std::string> known;
  for (const Field& field : Fields()) known.emplace_back(field.name);
  if (!node.IsObjectOf(known)) return;
  for (const Field& field : Fields()) {
    const Node threshold = node[field.name];
    if (!threshold.exists() || !threshold.IsObjectOf({"value", "origin"})) continue;
    const Node value = threshold["value"];
    const bool is_off = value.IsNull() && field.MayBeOff();
    if (value.IsNull() && !is_off) value.Fail("null is not a number, and this one cannot be off");
    field.Set(profile.values, is_off ? std::nullopt : std::optional(value.Number()));
    profile.origins[std::string(field.name)] = threshold["origin"].Text(kLongestText);
  }
}

double ReadSpinIpc(const Node& node) {
  const double ipc = node.Number();
  if (std::string fault = SpinIpcLimits().Fault(ipc); !fault.empty()) node.Fail(fault);
  return ipc;
}

void ReadSpinIpcs(const Node& node, Profile& profile) {
  core::EvidenceThresholds& evidence = profile.values.evidence;
  evidence.spin_ipc = {};
  evidence.spin_ipcs = 0;
  std::erase_if(profile.origins,
                [](const auto& origin) { return origin.first.starts_with("spin_ipc["); });
  for (const Node& range : node.List(0, core::EvidenceThresholds::kMostSpinIpcs, "ranges")) {
    if (!range.IsObjectOf({"from", "to", "origin"})) return;
    const double from = ReadSpinIpc(range["from"]);
    const double to = ReadSpinIpc(range["to"]);
    if (from > to) {
      range["from"].Fail(absl::StrCat(NumberText(from), " is above to, ", NumberText(to)));
    }
    evidence.spin_ipc.at(evidence.spin_ipcs++) = {.from = from, .to = to};
    profile.origins[range.path()] = range["origin"].Text(kLongestText);
  }
}

void ReadPause(const Node& node, Profile& profile) {
  profile.pause.reset();
  profile.origins.erase("pause");
  if (node.IsNull() || !node.IsObjectOf({"event", "config", "origin"})) return;
  const std::string name = node["event"].Text(kLongestName);
  if (std::ranges::find(kPauseEvents, name) == kPauseEvents.end()) {
    node["event"].Fail(absl::StrCat(
        Quoted(name), " is none of ",
        absl::StrJoin(kPauseEvents, ", ",
                      [](std::string* out, std::string_view event) { out->append(event); })));
  }
  profile.pause = PauseEvent{.name = name, .config = node["config"].Code(0xffff'ffff)};
  profile.origins["pause"] = node["origin"].Text(kLongestText);
}

// A list of codes, each one number or [from, to]. Empty where there is none.
std::vector<CodeRange> ReadCodes(const Node& node) {
  std::vector<CodeRange> ranges;
  if (!node.exists()) return ranges;
  for (const Node& code : node.List(1, 32, "codes")) {
    const std::vector<Node> ends =
        code.IsList() ? code.List(2, 2, "ends") : std::vector{code, code};
    if (ends.empty()) return ranges;
    const auto from = static_cast<uint32_t>(ends.front().Code(0xffff'ffff));
    const auto to = static_cast<uint32_t>(ends.back().Code(0xffff'ffff));
    if (from > to) code.Fail("begins above its end");
    ranges.push_back({from, to});
  }
  return ranges;
}

void ReadCpu(const Node& node, Profile& profile) {
  if (!node.IsObjectOf({"vendor", "family", "models", "steppings", "parts"})) return;
  CpuMatch& cpu = profile.cpu.emplace();
  const Node vendor = node["vendor"];
  for (const Node& name : vendor.IsList() ? vendor.List(1, 8, "names") : std::vector{vendor}) {
    cpu.vendors.push_back(name.Text(kLongestName));
  }
  if (cpu.vendors.empty()) return;
  const bool families = cpu.HasFamilies();
  for (const char* key : {"family", "models", "steppings", "parts"}) {
    const bool is_of_arm = key == std::string_view("parts");
    if (is_of_arm != families || !node[key].exists()) continue;
    node[key].Fail(
        absl::StrCat("is not what CPUs of ", Quoted(cpu.vendors.front()), " are identified by"));
  }
  cpu.models = ReadCodes(node[families ? "models" : "parts"]);
  cpu.steppings = ReadCodes(node["steppings"]);
  if (!cpu.steppings.empty() && cpu.models.empty()) {
    node["steppings"].Fail("are there, but no models");
  }
  const Node family = node["family"];
  if (families && family.exists() == cpu.models.empty()) family.Fail("and models go together");
  if (family.exists()) cpu.family = static_cast<uint32_t>(family.Code(0xffff));
}

// The profile to begin with.
Profile BaseOf(const Node& node, std::span<const Profile> bases) {
  if (!node.exists()) return bases.empty() ? Profile() : bases.front();
  const std::string name = node.Text(kLongestName);
  const auto base = std::ranges::find(bases, name, &Profile::name);
  if (base != bases.end()) return *base;
  std::vector<std::string> names;
  for (const Profile& known : bases) names.push_back(known.name);
  node.Fail(Quoted(name) + " is not a built-in profile" +
            Hint(name, names, "; `vcpulse list profiles` shows them"));
  return {};
}

Profile ReadProfile(const Node& top, std::span<const Profile> bases) {
  if (!top.IsObjectOf({"name", "description", "base", "cpu", "thresholds", "spin_ipc", "pause"})) {
    return {};
  }
  Profile profile = BaseOf(top["base"], bases);
  profile.name = top["name"].Text(kLongestName);
  const Node description = top["description"];
  profile.description = description.exists() ? description.Text(kLongestText) : "";
  profile.cpu.reset();
  if (const Node cpu = top["cpu"]; cpu.exists()) ReadCpu(cpu, profile);
  if (const Node part = top["thresholds"]; part.exists()) ReadThresholds(part, profile);
  if (const Node ranges = top["spin_ipc"]; ranges.exists()) {
    ReadSpinIpcs(ranges, profile);
    profile.spin_ipc_cpu = profile.cpu;
  }
  if (const Node pause = top["pause"]; pause.exists()) {
    ReadPause(pause, profile);
    profile.pause_cpu = profile.cpu;
  }
  if (absl::Status status = Check(profile.values); !status.ok()) {
    top.Fail(std::string(status.message()));
  }
  if (profile.pause && !profile.values.evidence.pause_cycles_each &&
      !core::FindSlots(std::array{profile.pause->name}).pause_in_cycles) {
    top["pause"]["event"].Fail(
        absl::StrCat(Quoted(profile.pause->name),
                     " counts instructions: thresholds.pause_cycles_each must say how many cycles "
                     "one takes"));
  }
  return profile;
}

std::string Quote(std::string_view text) {
  return boost::json::serialize(boost::json::string(text.data(), text.size()));
}

// "[" and what each of the list is as JSON.
template <typename T, typename ToText>
std::string List(const std::vector<T>& list, ToText to_text) {
  const auto append = [&](std::string* out, const T& one) { out->append(to_text(one)); };
  return absl::StrCat("[", absl::StrJoin(list, ", ", append), "]");
}

std::string Codes(const std::vector<CodeRange>& ranges) {
  const auto hex = [](uint32_t code) { return absl::StrCat("\"0x", absl::Hex(code), "\""); };
  return List(ranges, [hex](const CodeRange& range) {
    return range.from == range.to ? hex(range.from)
                                  : absl::StrCat("[", hex(range.from), ", ", hex(range.to), "]");
  });
}

std::string CpuText(const CpuMatch& cpu) {
  std::string text = absl::StrCat("{\"vendor\": ", List(cpu.vendors, Quote));
  if (!cpu.models.empty() && cpu.HasFamilies()) {
    absl::StrAppend(&text, ", \"family\": ", cpu.family, ", \"models\": ", Codes(cpu.models));
  } else if (!cpu.models.empty()) {
    absl::StrAppend(&text, ", \"parts\": ", Codes(cpu.models));
  }
  if (!cpu.steppings.empty()) absl::StrAppend(&text, ", \"steppings\": ", Codes(cpu.steppings));
  return text + "}";
}

}  // namespace

absl::StatusOr<Profile> Parse(std::string_view json, const std::string& source,
                              std::span<const Profile> bases) {
  const auto wrong = [&source](std::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": ", ToAbsl(what)));
  };
  if (json.size() > kMostBytes) return wrong("is more than 1 MiB, and no profile");
  const auto value = ParseJson(json);
  if (!value.ok()) return wrong(ToStd(value.status().message()));
  std::string error;
  Profile profile = ReadProfile(Node(*value, error), bases);
  if (!error.empty()) return wrong(error);
  profile.source = source;
  return profile;
}

std::string ToJson(const Profile& profile) {
  // The origin as a last field.
  const auto origin = [&profile](const std::string& field) {
    const auto found = profile.origins.find(field);
    const bool is_stated = found != profile.origins.end();
    return absl::StrCat("\"origin\": ", is_stated ? Quote(found->second) : "\"not stated\"", "}");
  };
  std::vector<std::string> thresholds;
  for (const Field& field : Fields()) {
    const std::optional<double> value = field.Get(profile.values);
    const std::string name(field.name);
    thresholds.push_back(absl::StrCat("    ", Quote(name),
                                      ": {\"value\": ", value ? NumberText(*value) : "null",
                                      ",\n      ", origin(name)));
  }
  std::vector<std::string> spins;
  for (const core::IpcRange& range : profile.values.evidence.SpinIpcs()) {
    spins.push_back(absl::StrCat("\n    {\"from\": ", NumberText(range.from),
                                 ", \"to\": ", NumberText(range.to), ",\n      ",
                                 origin(absl::StrCat("spin_ipc[", spins.size(), "]"))));
  }
  std::string text = absl::StrCat("{\n  \"name\": ", Quote(profile.name), ",\n");
  if (!profile.description.empty()) {
    absl::StrAppend(&text, "  \"description\": ", Quote(profile.description), ",\n");
  }
  if (profile.cpu) absl::StrAppend(&text, "  \"cpu\": ", CpuText(*profile.cpu), ",\n");
  absl::StrAppend(&text, "  \"thresholds\": {\n", absl::StrJoin(thresholds, ",\n"),
                  "\n  },\n  \"spin_ipc\": [", absl::StrJoin(spins, ","),
                  spins.empty() ? "],\n" : "\n  ],\n", "  \"pause\": ");
  if (!profile.pause) return text + "null\n}\n";
  return absl::StrCat(text, "{\"event\": ", Quote(profile.pause->name), ", \"config\": \"0x",
                      absl::Hex(profile.pause->config), "\",\n    ", origin("pause"), "\n}\n");
}

}  // namespace vcpulse::profile

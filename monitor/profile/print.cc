#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "monitor/profile/fields.h"
#include "monitor/profile/profile.h"

namespace vcpulse::profile {
namespace {

std::string Quote(std::string_view text) {
  return boost::json::serialize(boost::json::string(text.data(), text.size()));
}

std::string Codes(const std::vector<CodeRange>& ranges) {
  const auto hex = [](uint32_t code) { return absl::StrCat("\"0x", absl::Hex(code), "\""); };
  return absl::StrCat("[",
                      absl::StrJoin(ranges, ", ",
                                    [&](std::string* out, const CodeRange& r) {
                                      absl::StrAppend(
                                          out, r.from == r.to ? hex(r.from)
                                                              : absl::StrCat("[", hex(r.from), ", ",
                                                                             hex(r.to), "]"));
                                    }),
                      "]");
}

std::string CpuText(const CpuMatch& cpu) {
  std::string text = absl::StrCat("{\"vendor\": [",
                                  absl::StrJoin(cpu.vendors, ", ",
                                                [](std::string* out, const std::string& vendor) {
                                                  absl::StrAppend(out, Quote(vendor));
                                                }),
                                  "]");
  const bool families = HasFamilies(cpu.vendors.front());
  if (!cpu.models.empty()) {
    if (families) absl::StrAppend(&text, ", \"family\": ", cpu.family);
    absl::StrAppend(&text, families ? ", \"models\": " : ", \"parts\": ", Codes(cpu.models));
  }
  if (!cpu.steppings.empty()) absl::StrAppend(&text, ", \"steppings\": ", Codes(cpu.steppings));
  return text + "}";
}

// The origin as a last field.
std::string OriginText(const Profile& profile, const std::string& field) {
  const auto origin = profile.origins.find(field);
  return absl::StrCat("\"origin\": ",
                      origin == profile.origins.end() ? "\"not stated\"" : Quote(origin->second));
}

}  // namespace

std::string ToJson(const Profile& profile) {
  std::string text = absl::StrCat("{\n  \"name\": ", Quote(profile.name), ",\n");
  if (!profile.description.empty()) {
    absl::StrAppend(&text, "  \"description\": ", Quote(profile.description), ",\n");
  }
  if (profile.cpu) absl::StrAppend(&text, "  \"cpu\": ", CpuText(*profile.cpu), ",\n");
  absl::StrAppend(&text, "  \"thresholds\": {");
  const char* separator = "\n";
  for (const Field& field : Fields()) {
    const std::optional<double> value = field.Get(profile.values);
    const std::string name(field.name);
    absl::StrAppend(&text, separator, "    ", Quote(name),
                    ": {\"value\": ", value ? NumberText(*value) : "null", ",\n      ",
                    OriginText(profile, name), "}");
    separator = ",\n";
  }
  absl::StrAppend(&text, "\n  },\n  \"spin_ipc\": [");
  size_t at = 0;
  for (const core::IpcRange& range : profile.values.evidence.SpinIpcs()) {
    absl::StrAppend(&text, at > 0 ? "," : "", "\n    {\"from\": ", NumberText(range.from),
                    ", \"to\": ", NumberText(range.to), ",\n      ",
                    OriginText(profile, absl::StrCat("spin_ipc[", at, "]")), "}");
    ++at;
  }
  absl::StrAppend(&text, at > 0 ? "\n  ],\n" : "],\n", "  \"pause\": ");
  if (profile.pause) {
    absl::StrAppend(&text, "{\"event\": ", Quote(profile.pause->name), ", \"config\": \"0x",
                    absl::Hex(profile.pause->config), "\",\n    ", OriginText(profile, "pause"),
                    "}\n}\n");
  } else {
    absl::StrAppend(&text, "null\n}\n");
  }
  return text;
}

}  // namespace vcpulse::profile

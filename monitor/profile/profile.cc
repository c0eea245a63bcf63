#include "monitor/profile/profile.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/fd.h"
#include "kvm/base/text.h"
#include "monitor/profile/json_node.h"

namespace vcpulse::profile {
namespace {

std::vector<Profile> ParseBuiltIn() {
  std::vector<Profile> profiles;
  for (const BuiltInText& text : BuiltInTexts()) {
    absl::StatusOr<Profile> profile = Parse(text.json, std::string(text.file), profiles);
    if (!profile.ok()) {  // our own bug, found by the first test that runs
      std::fprintf(stderr, "built-in profile: %s\n", profile.status().ToString().c_str());
      std::abort();
    }
    profile->source = "built-in";
    profiles.push_back(*std::move(profile));
  }
  return profiles;
}

absl::Status NoSuchProfile(const std::string& name) {
  std::vector<std::string> names;
  for (const Profile& profile : BuiltIn()) names.push_back(profile.name);
  return absl::NotFoundError(Quoted(name) + " is neither a built-in profile nor a file" +
                             Hint(name, names, "; `vcpulse list profiles` shows those built in"));
}

// At most one byte more than a profile may have.
absl::StatusOr<std::string> ReadFile(const std::string& name) {
  const Fd fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT) return NoSuchProfile(name);
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", Quoted(name)));
  struct stat info{};
  if (::fstat(fd.get(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(name), " is a folder, not a profile"));
  }
  std::string text;
  char buffer[4096];
  while (text.size() <= kMostBytes) {
    const ssize_t size = ::read(fd.get(), buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", Quoted(name)));
    if (size == 0) break;
    text.append(buffer, static_cast<size_t>(size));
  }
  return text;
}

bool Holds(const std::vector<CodeRange>& ranges, uint32_t code) {
  return ranges.empty() || std::ranges::any_of(ranges, [code](const CodeRange& range) {
           return code >= range.from && code <= range.to;
         });
}

std::string Codes(const std::vector<CodeRange>& ranges, bool hex) {
  const auto one = [hex](uint32_t code) {
    return hex ? absl::StrCat("0x", absl::Hex(code, absl::kZeroPad2)) : absl::StrCat(code);
  };
  return absl::StrJoin(ranges, ",", [&](std::string* out, const CodeRange& range) {
    absl::StrAppend(out, one(range.from), range.to == range.from ? "" : "-",
                    range.to == range.from ? "" : one(range.to));
  });
}

}  // namespace

kvm::Event PauseEvent::ToEvent() const {
  return {.name = name, .type = PERF_TYPE_RAW, .config = config};
}

bool CpuMatch::HasFamilies() const {
  return vendors.front() != "arm64" && !vendors.front().starts_with("0x");
}

bool CpuMatch::Matches(const kvm::CpuIdentity& cpu) const {
  const bool is_vendor = std::ranges::any_of(vendors, [&cpu](const std::string& vendor) {
    return vendor == cpu.vendor || (vendor == "arm64" && cpu.vendor.starts_with("0x"));
  });
  if (!is_vendor || models.empty()) return is_vendor;
  return (cpu.vendor.starts_with("0x") || cpu.family == family) && Holds(models, cpu.model) &&
         Holds(steppings, cpu.stepping);
}

std::string CpuMatch::ToText() const {
  std::string text = absl::StrJoin(vendors, ", ");
  if (models.empty()) return text;
  if (HasFamilies()) absl::StrAppend(&text, " family ", family);
  absl::StrAppend(&text, HasFamilies() ? " model " : " part ", Codes(models, /*hex=*/true));
  if (!steppings.empty()) absl::StrAppend(&text, " stepping ", Codes(steppings, /*hex=*/false));
  return text;
}

std::span<const Profile> BuiltIn() {
  static const std::vector<Profile> profiles = ParseBuiltIn();
  return profiles;
}

absl::StatusOr<Profile> Load(const std::string& name_or_file) {
  const auto known = std::ranges::find(BuiltIn(), name_or_file, &Profile::name);
  if (known != BuiltIn().end()) return *known;
  const absl::StatusOr<std::string> text = ReadFile(name_or_file);
  if (!text.ok()) return text.status();
  return Parse(*text, name_or_file);
}

std::string WhatIsOfOtherCpus(const Profile& profile, const kvm::CpuIdentity& cpu) {
  const auto of_others = [&cpu](const std::optional<CpuMatch>& match) {
    return match && !match->Matches(cpu);
  };
  const bool pause = profile.pause && of_others(profile.pause_cpu);
  const bool spin_ipc = profile.values.evidence.spin_ipcs > 0 && of_others(profile.spin_ipc_cpu);
  if (!pause && !spin_ipc) return "";
  const CpuMatch own{.vendors = {cpu.vendor},
                     .family = cpu.family,
                     .models = {{cpu.model, cpu.model}},
                     .steppings = {{cpu.stepping, cpu.stepping}}};
  return absl::StrCat("profile ", profile.name, ": its ",
                      pause && spin_ipc ? "PAUSE event and IPCs of spins are"
                                        : (pause ? "PAUSE event is" : "IPCs of spins are"),
                      " of ", (pause ? profile.pause_cpu : profile.spin_ipc_cpu)->ToText(),
                      ", and this CPU is ", cpu.vendor.empty() ? "not known" : own.ToText());
}

const Profile& ChooseFor(const kvm::CpuIdentity& cpu) {
  // The generic ones come first: the last that matches is the closest.
  const Profile* chosen = &BuiltIn().front();
  for (const Profile& profile : BuiltIn()) {
    if (profile.cpu && profile.cpu->Matches(cpu)) chosen = &profile;
  }
  return *chosen;
}

}  // namespace vcpulse::profile

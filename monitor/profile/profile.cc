#include "monitor/profile/profile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/fd.h"
#include "kvm/base/text.h"
#include "kvm/events/closest_name.h"
#include "monitor/profile/built_in_texts.h"
#include "monitor/profile/parse.h"

namespace vcpulse::profile {
namespace {

std::vector<Profile> ParseBuiltIn() {
  std::vector<Profile> profiles;
  for (const BuiltInText& text : BuiltInTexts()) {
    absl::StatusOr<Profile> profile = ParseOn(text.json, std::string(text.file), profiles);
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
  const std::string nearest = kvm::ClosestName(name, names);
  return absl::NotFoundError(absl::StrCat(Quoted(name), " is neither a built-in profile nor a file",
                                          nearest.empty()
                                              ? "; `vcpulse list profiles` shows those built in"
                                              : absl::StrCat("; is '", nearest, "' meant?")));
}

// At most one byte more than a profile may have.
absl::StatusOr<std::string> ReadFile(const std::string& name) {
  const Fd fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT) return NoSuchProfile(name);
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", Quoted(name)));
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

}  // namespace

absl::StatusOr<Profile> Parse(std::string_view json, const std::string& source) {
  return ParseOn(json, source, BuiltIn());
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

const Profile& ChooseFor(const kvm::CpuIdentity& cpu) {
  // The generic ones come first: the last that matches is the closest.
  const Profile* chosen = &BuiltIn().front();
  for (const Profile& profile : BuiltIn()) {
    if (profile.cpu && profile.cpu->Matches(cpu)) chosen = &profile;
  }
  return *chosen;
}

}  // namespace vcpulse::profile

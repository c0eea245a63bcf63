#include "monitor/profile/installed.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <ranges>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/output_file.h"
#include "kvm/base/text.h"

namespace vcpulse::profile {
namespace {

namespace fs = std::filesystem;

absl::Status Failure(const std::error_code& error, const std::string& what) {
  return absl::ErrnoToStatus(error.value(), what);
}

}  // namespace

std::string InstalledFolder(const std::string& root) {
  return (fs::path(root) / "etc/vcpulse/profiles").string();
}

absl::StatusOr<std::vector<Profile>> Installed(const std::string& root) {
  const std::string folder = InstalledFolder(root);
  std::error_code error;
  std::vector<std::string> files;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path().string());
  }
  const bool none = error == std::errc::no_such_file_or_directory;
  if (error && !none) return Failure(error, absl::StrCat("cannot read ", QuotedPath(folder)));
  std::ranges::sort(files);
  std::vector<Profile> profiles;
  for (const std::string& file : files) {
    absl::StatusOr<Profile> profile = Load(file);
    if (!profile.ok()) return profile.status();
    profiles.push_back(*std::move(profile));
  }
  return profiles;
}

absl::StatusOr<Profile> ChooseForHost(const std::string& root) {
  const kvm::CpuIdentity cpu = kvm::ReadCpuIdentity(root);
  absl::StatusOr<std::vector<Profile>> installed = Installed(root);
  if (!installed.ok()) return installed.status();
  for (Profile& profile : std::ranges::reverse_view(*installed)) {
    if (profile.cpu && profile.cpu->Matches(cpu)) return std::move(profile);
  }
  return ChooseFor(cpu);
}

absl::StatusOr<std::string> Install(const Profile& profile, const std::string& root) {
  const std::string folder = InstalledFolder(root);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Failure(error, absl::StrCat("cannot make ", QuotedPath(folder)));
  const std::string path = (fs::path(folder) / absl::StrCat(profile.name, ".json")).string();
  auto file = OutputFile::Create(path, OutputFile::Appears::kWhenFinished);
  if (!file.ok()) return file.status();
  const std::string json = ToJson(profile);
  absl::Status status =
      (*file)->Append(std::span(reinterpret_cast<const uint8_t*>(json.data()), json.size()));
  if (status.ok()) status = (*file)->Finish();
  if (!status.ok()) return status;
  return path;
}

}  // namespace vcpulse::profile

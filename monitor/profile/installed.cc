#include "monitor/profile/installed.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/output_file.h"
#include "kvm/base/text.h"
#include "kvm/host.h"

namespace vcpulse::profile {
namespace {

namespace fs = std::filesystem;

absl::Status Failure(const std::error_code& error, const std::string& what) {
  return absl::ErrnoToStatus(error.value(), what);
}

// How exactly a profile says that it is for this CPU; 0: it does not.
int Fit(const Profile& profile, const kvm::CpuIdentity& cpu) {
  if (!profile.cpu || !profile.cpu->Matches(cpu)) return 0;
  return 1 + (profile.cpu->models.empty() ? 0 : 1) + (profile.cpu->steppings.empty() ? 0 : 1);
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

absl::StatusOr<HostProfile> ChooseForHost(const std::string& root) {
  const kvm::CpuIdentity cpu = kvm::ReadCpuIdentity(root);
  HostProfile chosen{.profile = ChooseFor(cpu)};
  absl::StatusOr<std::vector<Profile>> installed = Installed(root);
  if (absl::IsPermissionDenied(installed.status())) {
    chosen.note = absl::StrCat(installed.status().message(), ": profile ", chosen.profile.name,
                               ", which is built in, is used whatever is installed there");
    return chosen;
  }
  if (!installed.ok()) return installed.status();
  for (Profile& profile : *installed) {
    const int fit = Fit(profile, cpu);
    if (fit > 0 && fit >= Fit(chosen.profile, cpu)) chosen.profile = std::move(profile);
  }
  return chosen;
}

absl::StatusOr<Profile> LoadOnHost(const std::string& name_or_file, const std::string& root) {
  absl::StatusOr<std::vector<Profile>> installed = Installed(root);
  if (installed.ok()) {
    const auto known = std::ranges::find(*installed, name_or_file, &Profile::name);
    if (known != installed->end()) return std::move(*known);
  }
  absl::StatusOr<Profile> profile = Load(name_or_file);
  if (absl::IsNotFound(profile.status()) && !installed.ok() &&
      !absl::IsPermissionDenied(installed.status())) {
    return installed.status();
  }
  return profile;
}

absl::Status CanInstall(const std::string& root) {
  const std::string folder = InstalledFolder(root);
  std::error_code error;
  if (fs::create_directories(folder, error)) {
    // Whatever the umask is: recordings of other users look there.
    constexpr fs::perms kMode = fs::perms::owner_all | fs::perms::group_read |
                                fs::perms::group_exec | fs::perms::others_read |
                                fs::perms::others_exec;
    fs::permissions(folder, kMode, error);
  }
  if (error) return Failure(error, absl::StrCat("cannot make ", QuotedPath(folder)));
  if (access(folder.c_str(), W_OK) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write to ", QuotedPath(folder)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Install(const Profile& profile, const std::string& root) {
  if (absl::Status status = CanInstall(root); !status.ok()) return status;
  std::string path =
      (fs::path(InstalledFolder(root)) / absl::StrCat(profile.name, ".json")).string();
  auto file = OutputFile::Create(path, OutputFile::Appears::kWhenFinished);
  if (!file.ok()) return file.status();
  const std::string json = ToJson(profile);
  absl::Status status =
      (*file)->Append(std::span(reinterpret_cast<const uint8_t*>(json.data()), json.size()));
  if (status.ok()) status = (*file)->Finish();
  if (!status.ok()) return status;
  std::error_code error;
  constexpr fs::perms kMode = fs::perms::owner_read | fs::perms::owner_write |
                              fs::perms::group_read | fs::perms::others_read;
  fs::permissions(path, kMode, error);
  if (error) return Failure(error, absl::StrCat("cannot let all users read ", QuotedPath(path)));
  const auto chosen = ChooseForHost(root);
  if (!chosen.ok()) return chosen.status();
  if (chosen->profile.name != profile.name) {
    return absl::FailedPreconditionError(absl::StrCat(QuotedPath(path), " is written, but ",
                                                      QuotedPath(chosen->profile.source),
                                                      " is used on this host"));
  }
  return path;
}

}  // namespace vcpulse::profile

#include "tools/vcpulse/timeline_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "kvm/base/fd.h"
#include "kvm/base/text.h"
#include "monitor/timeline/folder_source.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

// Of a regular file; nothing for everything else.
std::optional<struct stat> Identify(const std::string& path, int standard_fd) {
  struct stat info{};
  const int failed = path == "-" ? fstat(standard_fd, &info) : stat(path.c_str(), &info);
  if (failed != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return info;
}

bool IsSame(const std::optional<struct stat>& a, const std::optional<struct stat>& b) {
  return a && b && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool IsFolder(const std::string& path) {
  struct stat info{};
  return path != "-" && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// The output must not become a part of the folder that is read, nor take the place of one.
absl::Status CheckNotInFolder(const std::string& input, const std::string& output,
                              const std::string& flag) {
  const auto out = Identify(output, STDOUT_FILENO);
  const auto files = timeline::TimelinesIn(input);
  if (!files.ok()) return absl::OkStatus();  // the reading says why
  bool is_part = false;
  for (const std::string& file : *files) is_part = is_part || IsSame(Identify(file, -1), out);
  if (output != "-" && output.ends_with(".vpt")) {
    const std::string folder = std::filesystem::path(output).parent_path();
    std::error_code unknown;
    is_part = is_part || std::filesystem::equivalent(folder.empty() ? "." : folder, input, unknown);
  }
  if (!is_part) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": ", output, " lies in the folder that is read: name a file elsewhere"));
}

}  // namespace

std::string NameOf(const std::string& file) { return file == "-" ? "standard input" : file; }

absl::Status ReadFailure(const absl::Status& status, const std::string& file) {
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(
      absl::StrCat(file, ": no such file (`vcpulse record -o FILE` writes one)"));
}

absl::StatusOr<timeline::ReadReport> ReadInput(const std::string& file,
                                               const timeline::EntrySink& sink) {
  absl::Status taken;
  absl::StatusOr<timeline::ReadReport> read =
      timeline::ReadTimeline(file, [&](const timeline::Entry& entry) {
        taken = sink(entry);
        return taken;
      });
  if (read.ok() || !taken.ok()) return read;
  return ReadFailure(read.status(), file);
}

void Warn(const std::string& file, const std::string& text) {
  if (text.empty()) return;
  std::fprintf(stderr, "vcpulse: warning: %s: %s\n", NameOf(file).c_str(), text.c_str());
}

absl::StatusOr<std::string> ReadWhole(const std::string& file, size_t at_most) {
  const auto failure = [&](int error) {
    return absl::ErrnoToStatus(error, absl::StrCat("cannot read ", NameOf(file)));
  };
  const Fd fd(file == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                          : ::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return failure(errno);
  std::string text;
  std::array<char, size_t{1} << 16> buffer;
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure(errno);
    if (got == 0) return text;
    if (text.size() + static_cast<size_t>(got) > at_most) {
      return absl::ResourceExhaustedError(
          absl::StrCat(NameOf(file), ": more than ", SizeText(at_most), ": split it"));
    }
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

absl::Status CheckNotSameFile(const std::string& input, const std::string& output,
                              const std::string& flag) {
  if (IsFolder(input)) return CheckNotInFolder(input, output, flag);
  const auto in = Identify(input, STDIN_FILENO);
  const auto out = Identify(output, STDOUT_FILENO);
  if (IsSame(in, out)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": ", output, " is the file that is read: name another one"));
  }
  if (output != "-" && out && IsSame(in, Identify(output + ".old", -1))) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": what ", output, " holds now would be kept as ", output,
                     ".old, and that is the file that is read: name another one"));
  }
  return absl::OkStatus();
}

}  // namespace vcpulse::tools

#include "tools/vcpulse/timeline_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/base/fd.h"
#include "kvm/base/text.h"
#include "monitor/timeline/folder_source.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

constexpr int kMostInputs = CLI::detail::expected_max_vector_size;  // help shows FILE...

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

void AddInputOption(CLI::App& command, std::vector<std::string>& files, const std::string& help) {
  // By a callback: an option that is a vector takes "[a,b]" apart.
  const auto take = [&files](const std::vector<std::string>& values) {
    files = values;
    return true;
  };
  command.add_option("FILE", take, help)
      ->expected(1, kMostInputs)
      ->allow_extra_args()
      ->default_str(kDefaultTimeline);
}

absl::Status ReadFailure(const absl::Status& status, const timeline::Input& input) {
  if (!absl::IsNotFound(status) || input.path() != kDefaultTimeline) return status;
  return absl::NotFoundError(absl::StrCat(status.message(), " (`vcpulse record` writes it)"));
}

absl::StatusOr<timeline::ReadReport> ReadInput(const timeline::Input& input,
                                               const timeline::EntrySink& sink) {
  absl::Status taken;
  absl::StatusOr<timeline::ReadReport> read =
      timeline::ReadTimeline(input, [&](const timeline::Entry& entry) {
        taken = sink(entry);
        return taken;
      });
  if (read.ok() || !taken.ok()) return read;
  return ReadFailure(read.status(), input);
}

void Warn(const std::string& file, const std::string& text) {
  if (text.empty()) return;
  std::fprintf(stderr, "vcpulse: warning: %s: %s\n", NameOf(file).c_str(), text.c_str());
}

namespace {

absl::Status CannotRead(const std::string& file, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot read ", NameOf(file)));
}

absl::StatusOr<Fd> OpenInput(const std::string& file) {
  Fd fd(file == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                    : ::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return CannotRead(file, errno);
  return fd;
}

// Hands over all that can be read from `fd` on.
absl::Status ReadOn(const Fd& fd, const std::string& file,
                    const std::function<absl::Status(std::string_view)>& sink) {
  std::array<char, size_t{1} << 16> buffer;
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotRead(file, errno);
    if (got == 0) return absl::OkStatus();
    absl::Status taken = sink({buffer.data(), static_cast<size_t>(got)});
    if (!taken.ok()) return taken;
  }
}

}  // namespace

absl::StatusOr<std::string> ReadWhole(const std::string& file, size_t at_most) {
  const absl::StatusOr<Fd> fd = OpenInput(file);
  if (!fd.ok()) return fd.status();
  return ReadWhole(*fd, file, at_most);
}

absl::StatusOr<std::string> ReadWhole(const Fd& fd, const std::string& file, size_t at_most) {
  std::string text;
  absl::Status read = ReadOn(fd, file, [&](std::string_view got) {
    if (text.size() + got.size() > at_most) {
      return absl::ResourceExhaustedError(
          absl::StrCat(NameOf(file), ": more than ", SizeText(at_most), ": split it"));
    }
    text.append(got);
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  return text;
}

absl::StatusOr<Fd> OpenRereadable(const std::string& file) {
  absl::StatusOr<Fd> fd = OpenInput(file);
  struct stat status{};
  if (!fd.ok()) return fd;
  if (fstat(fd->get(), &status) == 0 && S_ISREG(status.st_mode) &&
      lseek(fd->get(), 0, SEEK_CUR) == 0) {
    return fd;
  }
  const char* const folder = std::getenv("TMPDIR");
  const std::string name = folder != nullptr && *folder != '\0' ? folder : "/tmp";
  Fd copy(::open(name.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  const auto failed = [&](int error) {
    return absl::ErrnoToStatus(
        error, absl::StrCat("cannot copy ", NameOf(file), ", which is read twice, to ", name,
                            " (TMPDIR names another folder)"));
  };
  if (!copy.valid()) return failed(errno);
  absl::Status read = ReadOn(*fd, file, [&](std::string_view got) -> absl::Status {
    while (!got.empty()) {
      const ssize_t written = ::write(copy.get(), got.data(), got.size());
      if (written < 0 && errno != EINTR) return failed(errno);
      if (written > 0) got.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  return copy;
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

absl::Status CheckNotSameFile(const std::vector<std::string>& inputs, const std::string& output,
                              const std::string& flag) {
  for (const std::string& input : inputs) {
    if (absl::Status status = CheckNotSameFile(input, output, flag); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace vcpulse::tools

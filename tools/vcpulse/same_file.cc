#include "tools/vcpulse/same_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "absl/strings/str_cat.h"

namespace vcpulse::tools {
namespace {

// Of a regular file; nothing for everything else.
std::optional<struct stat> Identify(const std::string& path, int standard_fd) {
  struct stat info {};
  const int failed = path == "-" ? fstat(standard_fd, &info) : stat(path.c_str(), &info);
  if (failed != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return info;
}

bool IsSame(const std::optional<struct stat>& a, const std::optional<struct stat>& b) {
  return a && b && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

}  // namespace

absl::Status CheckNotSameFile(const std::string& input, const std::string& output,
                              const std::string& flag) {
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

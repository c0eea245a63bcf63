#include "tools/vcpulse/read_whole.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "kvm/base/fd.h"
#include "tools/vcpulse/size_option.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {

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

}  // namespace vcpulse::tools

#include "tools/vcpulse/output.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "kvm/base/text.h"
#include "tools/vcpulse/commands.h"

namespace vcpulse::tools {

absl::Status WriteToStdout(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
                       std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written) return absl::OkStatus();
  const int error = errno;
  if (error == EPIPE) return absl::CancelledError("standard output: its reader went away");
  return absl::ErrnoToStatus(error, "cannot write standard output");
}

int WriteStdout(const std::string& text) {
  const absl::Status status = WriteToStdout(text);
  return status.ok() || absl::IsCancelled(status) ? kExitOk : Fail(status);
}

bool StdoutReaderHasGone() {
  pollfd stdout_end{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return poll(&stdout_end, 1, 0) == 1 && (stdout_end.revents & POLLERR) != 0;
}

bool WantsColour() {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  return isatty(STDOUT_FILENO) == 1;
}

bool WantsColour(std::string_view choice) {
  return choice == "always" || (choice == "auto" && WantsColour());
}

std::optional<size_t> WidthOfStdout() {
  size_t width = 0;
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    width = ParseNumber<size_t>(columns).value_or(0);
  }
  winsize window{};
  if (width == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) width = window.ws_col;
  return width == 0 ? std::nullopt : std::optional(width);
}

std::string Aligned(const std::vector<std::vector<std::string>>& rows, size_t indent) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    text += line + '\n';
  }
  return text;
}

}  // namespace vcpulse::tools

#include "tools/vcpulse/standard_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

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

bool WantsColour() {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  return isatty(STDOUT_FILENO) == 1;
}

}  // namespace vcpulse::tools

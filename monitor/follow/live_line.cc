#include "monitor/follow/live_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_format.h"

namespace vcpulse::follow {
namespace {

uint64_t Count(const recorder::Progress& progress, core::Band band) {
  return progress.bands[static_cast<size_t>(band)];
}

size_t TerminalColumns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

std::string FormatLiveLine(absl::Duration elapsed, uint64_t ticks,
                           const recorder::Progress& progress, size_t columns) {
  std::string line = absl::StrFormat(
      "%.1fs  %d ticks  %d gaps  vCPUs: %d halted, %d spinning, %d productive, %d unknown",
      absl::ToDoubleSeconds(elapsed), ticks, progress.gaps, Count(progress, core::Band::kHalted),
      Count(progress, core::Band::kSpinning), Count(progress, core::Band::kProductive),
      Count(progress, core::Band::kUnknown) + Count(progress, core::Band::kNone));
  if (line.size() > columns) line.resize(columns);
  return line;
}

LiveLine::LiveLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

void LiveLine::Show(absl::Duration elapsed, uint64_t ticks, const recorder::Progress& progress) {
  if (!terminal_) return;
  const std::string line = FormatLiveLine(elapsed, ticks, progress, TerminalColumns() - 1);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void LiveLine::Clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace vcpulse::follow

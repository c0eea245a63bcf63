#include "monitor/follow/live_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"

namespace vcpulse::follow {
namespace {

constexpr size_t kWidestName = 20;
constexpr size_t kMostRows = 16;  // the terminal is for other things, too

struct Screen {
  size_t columns = 80;
  size_t rows = 24;
};

Screen ScreenOfStderr() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return {.columns = size.ws_col, .rows = std::max<size_t>(size.ws_row, 2)};
}

std::string Cut(const std::string& line, size_t columns) {
  return std::string(CutUtf8(line, columns));
}

std::string VmLine(const recorder::Progress::Vm& vm, size_t name_width, size_t columns) {
  std::string line = absl::StrCat("  ", Cut(Printable(vm.name), name_width));
  line.resize(std::max(line.size(), 2 + name_width), ' ');
  line += "  ";
  for (const core::Verdict& verdict : vm.vcpus) {
    line += reading::BandLetter(verdict.band, verdict.starved);
  }
  if (line.size() > columns) line = Cut(line, columns - 1) + '+';
  return line;
}

}  // namespace

std::string FormatLiveLine(absl::Duration elapsed, uint64_t ticks,
                           const recorder::Progress& progress, size_t columns) {
  const auto bands = progress.Bands();
  const auto count = [&bands](core::Band band) { return bands[static_cast<size_t>(band)]; };
  return Cut(
      absl::StrFormat(
          "%.1fs  %d ticks  %d gaps  vCPUs: %d halted, %d spinning, %d productive, %d unknown",
          absl::ToDoubleSeconds(elapsed), ticks, progress.gaps, count(core::Band::kHalted),
          count(core::Band::kSpinning), count(core::Band::kProductive),
          count(core::Band::kUnknown) + count(core::Band::kNone)),
      columns);
}

std::vector<std::string> FormatLiveLines(absl::Duration elapsed, uint64_t ticks,
                                         const recorder::Progress& progress, size_t columns,
                                         size_t rows) {
  std::vector<std::string> lines = {FormatLiveLine(elapsed, ticks, progress, columns)};
  size_t name_width = 0;
  for (const auto& vm : progress.vms) name_width = std::max(name_width, Printable(vm.name).size());
  name_width = std::min(name_width, kWidestName);
  for (const auto& vm : progress.vms) {
    const size_t left = progress.vms.size() + 1 - lines.size();
    if (lines.size() + 1 >= rows && left > 1) {
      if (lines.size() < rows) {
        lines.push_back(Cut(absl::StrCat("  and ", Plural(left, "more VM")), columns));
      }
      break;
    }
    lines.push_back(VmLine(vm, name_width, columns));
  }
  return lines;
}

LiveLine::LiveLine(bool shared) : terminal_(isatty(STDERR_FILENO) == 1), shared_(shared) {}

void LiveLine::Show(absl::Duration elapsed, uint64_t ticks, const recorder::Progress& progress) {
  if (!terminal_) return;
  const Screen screen = ScreenOfStderr();
  const std::vector<std::string> lines =
      FormatLiveLines(elapsed, ticks, progress, screen.columns - 1,
                      shared_ ? 1 : std::min(screen.rows - 1, kMostRows));
  Clear();
  std::fputs(absl::StrJoin(lines, "\n").c_str(), stderr);
  std::fflush(stderr);
  for (const std::string& line : lines) shown_.push_back(line.size());
}

void LiveLine::Clear() {
  if (shown_.empty()) return;
  // A window that became narrower wraps them.
  const size_t columns = ScreenOfStderr().columns;
  size_t rows = 0;
  for (const size_t width : shown_) rows += width == 0 ? 1 : (width - 1) / columns + 1;
  if (rows > 1) std::fprintf(stderr, "\033[%zuA", rows - 1);
  std::fputs("\r\033[J", stderr);
  std::fflush(stderr);
  shown_.clear();
}

}  // namespace vcpulse::follow

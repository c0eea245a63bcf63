#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "monitor/recorder/recording.h"

namespace vcpulse::follow {

// The line that a service manager shows of `record`: elapsed time, ticks, gaps and how many vCPUs
// are in each band now. At most `columns` wide.
std::string FormatLiveLine(absl::Duration elapsed, uint64_t ticks,
                           const recorder::Progress& progress, size_t columns);

// What a terminal shows: that line, then one per VM with a character per vCPU
// (reading::BandLetter). At most `rows` lines; where they do not hold all VMs the last says how
// many more there are, and a "+" ends a line that does not hold all vCPUs.
std::vector<std::string> FormatLiveLines(absl::Duration elapsed, uint64_t ticks,
                                         const recorder::Progress& progress, size_t columns,
                                         size_t rows);

// Rewrites those lines in place on stderr where stderr is a terminal, else does nothing. One
// thread.
class LiveLine {
 public:
  // `shared`: others write to this terminal as well, so that only the first line is shown: moving
  // up over several would erase theirs.
  explicit LiveLine(bool shared = false);
  // Leaves the terminal at the start of an empty line.
  ~LiveLine() { Clear(); }

  void Show(absl::Duration elapsed, uint64_t ticks, const recorder::Progress& progress);
  // Removes the lines, so that something else can be printed.
  void Clear();

 private:
  bool terminal_;
  bool shared_;
  std::vector<size_t> shown_;  // the columns of each line
};

}  // namespace vcpulse::follow

#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "monitor/recorder/recording.h"

namespace vcpulse::follow {

// The line that a terminal sees during `record`: elapsed time, ticks, gaps and how many vCPUs are
// in each band now. At most `columns` wide.
std::string FormatLiveLine(absl::Duration elapsed, uint64_t ticks,
                           const recorder::Progress& progress, size_t columns);

// Rewrites that line in place on stderr where stderr is a terminal, else does nothing. One thread.
class LiveLine {
 public:
  LiveLine();
  // Leaves the terminal at the start of an empty line.
  ~LiveLine() { Clear(); }

  void Show(absl::Duration elapsed, uint64_t ticks, const recorder::Progress& progress);
  // Removes the line, so that something else can be printed.
  void Clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace vcpulse::follow

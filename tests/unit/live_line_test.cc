#include "monitor/follow/live_line.h"

#include <gtest/gtest.h>

namespace vcpulse::follow {
namespace {

recorder::Progress SomeProgress() {
  recorder::Progress progress{.samples = 30, .vcpu_samples = 120, .gaps = 2};
  progress.bands[static_cast<size_t>(core::Band::kNone)] = 1;
  progress.bands[static_cast<size_t>(core::Band::kHalted)] = 3;
  progress.bands[static_cast<size_t>(core::Band::kSpinning)] = 4;
  progress.bands[static_cast<size_t>(core::Band::kProductive)] = 5;
  progress.bands[static_cast<size_t>(core::Band::kUnknown)] = 6;
  return progress;
}

TEST(LiveLine, SaysTimeTicksGapsAndBands) {
  EXPECT_EQ(FormatLiveLine(absl::Milliseconds(3060), 30, SomeProgress(), 200),
            "3.1s  30 ticks  2 gaps  vCPUs: 3 halted, 4 spinning, 5 productive, 7 unknown");
}

// A line wider than the terminal would wrap, and \r would not take it back.
TEST(LiveLine, FitsTheTerminal) {
  EXPECT_EQ(FormatLiveLine(absl::Seconds(3), 30, SomeProgress(), 20), "3.0s  30 ticks  2 ga");
}

}  // namespace
}  // namespace vcpulse::follow

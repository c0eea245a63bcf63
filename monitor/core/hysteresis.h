#pragma once

#include <array>
#include <cstddef>

#include "monitor/core/presence.h"

namespace vcpulse::core {

// Whether a judgement states what was measured (HALTED, starved, paused, nothing counted, ...)
// rather than what the numbers look like.
bool IsMeasured(const Judgement& judgement);

// Smooths the judgements of one vCPU: a change between SPINNING, PRODUCTIVE and UNKNOWN for want of
// a clear picture needs two of the last three windows. What is measured is shown at once, in either
// direction: to hold HALTED over a window in which the vCPU ran would be a wrong number.
class BandHysteresis {
 public:
  // Takes the judgement of the next window; gives what to show: it, or, while the change is not
  // believed yet, the last one of the band before.
  const Judgement& Push(const Judgement& raw);

 private:
  static constexpr size_t kWindows = 3;
  static constexpr int kNeeded = 2;

  std::array<Band, kWindows> recent_{};  // of judgements that are not measured, in a ring
  size_t next_ = 0;
  Judgement shown_;
};

}  // namespace vcpulse::core

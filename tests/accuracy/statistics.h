#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace vcpulse::accuracy {

// So many of so many.
struct Share {
  uint64_t part = 0;
  uint64_t whole = 0;

  // 0..1; nothing of nothing.
  std::optional<double> Value() const;
};

// Wilson's score interval, in which the true share lies with 95 %. It stays within 0..1 and has a
// width where the share is 0 or 1. Nothing of nothing.
struct Bounds {
  double low = 0;
  double high = 0;
};
std::optional<Bounds> Wilson95(const Share& share);

// How long it took to notice changes.
struct Delays {
  uint64_t changes = 0;
  uint64_t missed = 0;  // not noticed before the next change or the end
  uint64_t ticks = 0;   // sum over those that were noticed
  uint64_t longest = 0;

  std::optional<double> Mean() const;  // of those that were noticed
  Delays& operator+=(const Delays& other);
};

// Of one vCPU, tick by tick. `truth` below 0: a tick that is of no class; the change is timed from
// the first whole tick of the new class. A change that is shown in that tick took 0 ticks. `shown`
// has as many entries.
Delays DetectionDelays(std::span<const int> truth, std::span<const int> shown);

}  // namespace vcpulse::accuracy

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "monitor/core/delta.h"
#include "monitor/core/sample.h"

namespace vcpulse::core {

// A verdict covers at least this much time. Below it, half of all ticks of a vCPU that shares its
// CPU see nothing run.
inline constexpr int64_t kShortestVerdict_ns = 10'000'000;

// The recent samples of one vCPU in one epoch, so that ticks shorter than the shortest verdict are
// judged over a window that ends at the tick. Memory is taken once, by the constructor.
class VerdictWindow {
 public:
  // `interval_ns` is the nominal tick; windows cover at least `shortest_ns`.
  explicit VerdictWindow(int64_t interval_ns, int64_t shortest_ns = kShortestVerdict_ns);

  // Takes the next sample, in order, and makes `delta` that over the window that ends at it: the
  // shortest span of samples that covers shortest_ns, within 5 % for ticks that come a little
  // early. False, and `delta` is left alone, while the window is not yet full.
  bool Push(const VcpuSample& sample, VcpuDelta& delta);

 private:
  const VcpuSample& FromNewest(size_t age) const;

  int64_t shortest_ns_;
  std::vector<VcpuSample> ring_;
  size_t next_ = 0;
  size_t size_ = 0;
};

}  // namespace vcpulse::core

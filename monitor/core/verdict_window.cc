#include "monitor/core/verdict_window.h"

#include <algorithm>

namespace vcpulse::core {
namespace {

// Ticks wake a little late or early; a window that is short by less than this is full.
constexpr double kTolerance = 0.05;

size_t SamplesNeeded(int64_t interval_ns, int64_t shortest_ns) {
  const int64_t ticks = (shortest_ns + interval_ns - 1) / std::max<int64_t>(interval_ns, 1);
  // One more than the ticks that span it, and one for a tick that came early.
  return static_cast<size_t>(std::max<int64_t>(ticks, 1)) + 2;
}

}  // namespace

VerdictWindow::VerdictWindow(int64_t interval_ns, int64_t shortest_ns)
    : shortest_ns_(shortest_ns), ring_(SamplesNeeded(interval_ns, shortest_ns)) {}

const VcpuSample& VerdictWindow::FromNewest(size_t age) const {
  // A division would cost more than the subtraction it prepares.
  const size_t at = next_ + ring_.size() - 1 - age;
  return ring_[at < ring_.size() ? at : at - ring_.size()];
}

bool VerdictWindow::Push(const VcpuSample& sample, VcpuDelta& delta) {
  ring_[next_] = sample;
  next_ = next_ + 1 == ring_.size() ? 0 : next_ + 1;
  size_ = std::min(size_ + 1, ring_.size());

  const auto enough_ns =
      static_cast<int64_t>(static_cast<double>(shortest_ns_) * (1.0 - kTolerance));
  for (size_t age = 1; age < size_; ++age) {
    const VcpuSample& earlier = FromNewest(age);
    if (Interval(earlier, sample) < enough_ns) continue;
    Subtract(earlier, sample, delta);
    return true;
  }
  return false;
}

}  // namespace vcpulse::core

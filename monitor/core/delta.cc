#include "monitor/core/delta.h"

#include <algorithm>

namespace vcpulse::core {
namespace {

uint64_t Progress(uint64_t earlier, uint64_t later) {
  return later > earlier ? later - earlier : 0;
}

// Differences of stamps wrap rather than overflow: a damaged timeline may hold any stamps.
int64_t Difference(int64_t later, int64_t earlier) {
  return static_cast<int64_t>(static_cast<uint64_t>(later) - static_cast<uint64_t>(earlier));
}

// The middle of a read is its begin and half its length.
int64_t HalfLength(const VcpuSample& sample) {
  return Difference(sample.read_end_ns, sample.read_begin_ns) / 2;
}

// Ticks wake a little late or early; a window that is short by less than this is full.
constexpr double kTolerance = 0.05;

size_t SamplesNeeded(int64_t interval_ns, int64_t shortest_ns) {
  const int64_t ticks = (shortest_ns + interval_ns - 1) / std::max<int64_t>(interval_ns, 1);
  // One more than the ticks that span it, and one for a tick that came early.
  return static_cast<size_t>(std::max<int64_t>(ticks, 1)) + 2;
}

}  // namespace

int64_t Interval(const VcpuSample& earlier, const VcpuSample& later) {
  const int64_t begins = Difference(later.read_begin_ns, earlier.read_begin_ns);
  return Difference(begins, Difference(HalfLength(earlier), HalfLength(later)));
}

VcpuDelta Subtract(const VcpuSample& earlier, const VcpuSample& later) {
  VcpuDelta delta;
  Subtract(earlier, later, delta);
  return delta;
}

void Subtract(const VcpuSample& earlier, const VcpuSample& later, VcpuDelta& delta) {
  delta.interval_ns = Interval(earlier, later);
  delta.time_enabled_ns = Progress(earlier.time_enabled_ns, later.time_enabled_ns);
  delta.time_running_ns = Progress(earlier.time_running_ns, later.time_running_ns);
  delta.ran_since_start_ns = later.time_running_ns;
  delta.never_counted = 0;
  for (size_t i = 0; i < kMaxEvents; ++i) {
    delta.counts[i] = Progress(earlier.counts[i], later.counts[i]);
    delta.never_counted |= uint32_t{later.counts[i] == 0} << i;
  }
  if (earlier.has_scheduler_times && later.has_scheduler_times) {
    delta.run_ns = Progress(earlier.run_ns, later.run_ns);
    delta.run_delay_ns = Progress(earlier.run_delay_ns, later.run_delay_ns);
  } else {
    delta.run_ns.reset();
    delta.run_delay_ns.reset();
  }
  delta.state = later.state;
}

VcpuDelta AddPmu(const VcpuDelta& delta, const VcpuDelta& other) {
  VcpuDelta sum = delta;
  sum.time_running_ns += other.time_running_ns;
  sum.ran_since_start_ns += other.ran_since_start_ns;
  sum.never_counted &= other.never_counted;
  for (size_t i = 0; i < kMaxEvents; ++i) sum.counts[i] += other.counts[i];
  return sum;
}

std::optional<double> ScaledCount(const VcpuDelta& delta, size_t slot) {
  if (delta.time_running_ns == 0) return std::nullopt;
  const auto count = static_cast<double>(delta.counts.at(slot));
  if (delta.time_running_ns >= delta.time_enabled_ns) return count;
  return count * static_cast<double>(delta.time_enabled_ns) /
         static_cast<double>(delta.time_running_ns);
}

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

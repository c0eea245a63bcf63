#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "monitor/core/sample.h"

namespace vcpulse::core {

// What one vCPU did between two samples of one epoch.
struct VcpuDelta {
  int64_t interval_ns = 0;  // between the middles of the two reads; > 0 for a valid delta
  uint64_t time_enabled_ns = 0;
  uint64_t time_running_ns = 0;
  std::array<uint64_t, kMaxEvents> counts{};
  // Of the later sample, since the epoch began: time with the group on the PMU, and a bit per slot
  // that has not counted anything yet.
  uint64_t ran_since_start_ns = 0;
  uint32_t never_counted = 0;
  // Absent where either sample lacks the scheduler times.
  std::optional<uint64_t> run_ns;
  std::optional<uint64_t> run_delay_ns;
  ThreadState state = ThreadState::kNotRead;  // of the later sample

  bool NeverCounted(size_t slot) const { return (never_counted >> slot & 1) != 0; }

  bool operator==(const VcpuDelta&) const = default;
};

// From the middle of one read to the middle of the other, ns.
int64_t Interval(const VcpuSample& earlier, const VcpuSample& later);

// later - earlier. Both must be samples of the same vCPU in the same epoch, in order. A value that
// went backwards (never seen from a sane kernel) is taken as no progress: 0.
VcpuDelta Subtract(const VcpuSample& earlier, const VcpuSample& later);
// The same over what `delta` held: the tick's way, which copies nothing.
void Subtract(const VcpuSample& earlier, const VcpuSample& later, VcpuDelta& delta);

// Of one vCPU on a hybrid host: `delta` and what a group with the same events on another core PMU
// did meanwhile. Raw counts and times running add up; the time enabled is that of the thread and
// the same in both.
VcpuDelta AddPmu(const VcpuDelta& delta, const VcpuDelta& other);

// The count extrapolated to the whole time enabled: count * enabled / running. An estimate, to be
// shown as one; nothing where the group never ran. Exact (the count itself) where running =
// enabled.
std::optional<double> ScaledCount(const VcpuDelta& delta, size_t slot);

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

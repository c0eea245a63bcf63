#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "monitor/core/sample.h"

namespace vcpulse::core {

// What one vCPU did between two samples of one epoch.
struct VcpuDelta {
  int64_t interval_ns = 0;  // between the middles of the two reads; > 0 for a valid delta
  uint64_t time_enabled_ns = 0;
  uint64_t time_running_ns = 0;
  std::array<uint64_t, kMaxEvents> counts{};
  // Absent where either sample lacks the scheduler times.
  std::optional<uint64_t> run_ns;
  std::optional<uint64_t> run_delay_ns;
  ThreadState state = ThreadState::kNotRead;  // of the later sample

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

}  // namespace vcpulse::core

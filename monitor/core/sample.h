#pragma once

// monitor/core is the pure part of vcpulse: sample -> delta -> verdict. Values in, values out: it
// does no I/O, reads no clock, allocates only where a header says so, and links neither Asio,
// OpenSSL nor protobuf.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vcpulse::core {

// Counters of one group at most: what `full` and a CPU's PAUSE event need, and one to spare.
inline constexpr size_t kMaxEvents = 8;

// Counter groups of one vCPU at most (--multiplex, hybrid CPUs; else one).
inline constexpr size_t kMaxGroups = 8;

// State of a vCPU thread (field 3 of /proc/PID/task/TID/stat), read only where it is needed.
enum class ThreadState : uint8_t {
  kNotRead = 0,
  kBlocked = 1,   // S or I
  kRunnable = 2,  // R
  kStopped = 3,   // T or t
  kExited = 4,    // Z, X, or the thread is gone
  kPaused = 5,    // blocked outside KVM_RUN with all of its VM's vCPUs: the VMM holds them
  kIoWait = 6,    // D: it wants to run and waits for memory or storage of the host
};

// The raw cumulative values of one vCPU at one tick. Slots of `counts` follow the epoch's list of
// events; slots beyond it are unused and zero.
struct VcpuSample {
  int64_t read_begin_ns = 0;  // CLOCK_MONOTONIC; the group was read between begin and end
  int64_t read_end_ns = 0;
  uint64_t time_enabled_ns = 0;  // of the group: the thread was on a CPU, guest or host mode
  uint64_t time_running_ns = 0;  // thereof with the group on the PMU
  std::array<uint64_t, kMaxEvents> counts{};
  uint64_t run_ns = 0;  // schedstat; valid where has_scheduler_times
  uint64_t run_delay_ns = 0;
  bool has_scheduler_times = false;
  ThreadState state = ThreadState::kNotRead;

  bool operator==(const VcpuSample&) const = default;
};

// The raw cumulative values of a further group of one vCPU.
struct GroupSample {
  uint64_t time_enabled_ns = 0;
  uint64_t time_running_ns = 0;
  std::array<uint64_t, kMaxEvents> counts{};

  bool operator==(const GroupSample&) const = default;
};

// All vCPUs of one VM at one tick: all of them or no sample at all.
struct Sample {
  uint64_t tick = 0;              // number of the tick in the stream
  int64_t deadline_ns = 0;        // CLOCK_MONOTONIC, when the tick was due
  int64_t wake_ns = 0;            // when the sampling thread woke for it
  std::vector<VcpuSample> vcpus;  // in the order of the epoch's vCPU set
  // The groups of each vCPU beyond its first, where the epoch has such: entry
  // v * FurtherGroups() + g.
  std::vector<GroupSample> further;

  size_t FurtherGroups() const { return vcpus.empty() ? 0 : further.size() / vcpus.size(); }

  bool operator==(const Sample&) const = default;
};

// One vCPU as another of its groups saw it: the same instants, scheduler times and state, the times
// and counts of that group. So every function of a VcpuSample serves each group.
inline VcpuSample WithGroup(const VcpuSample& vcpu, const GroupSample& group) {
  VcpuSample sample = vcpu;
  sample.time_enabled_ns = group.time_enabled_ns;
  sample.time_running_ns = group.time_running_ns;
  sample.counts = group.counts;
  return sample;
}

}  // namespace vcpulse::core

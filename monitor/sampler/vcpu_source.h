#pragma once

// One vCPU as the tick reads it: from what the kernel keeps of its thread where there is a
// ThreadKeeper (--reader bpf), else by read(2) of its groups and of files of /proc.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kvm/bpf/thread_keeper.h"
#include "kvm/counters/counter_group.h"
#include "kvm/counters/scheduler_times.h"
#include "monitor/core/sample.h"

namespace vcpulse::sampler {

// When a reading costs something.
struct ReadPolicy {
  // The thread's state goes into the sample where at most this share of the interval was enabled:
  // where a vCPU may be called HALTED, its thread must not be waiting for a CPU. Negative: never.
  double state_below = 0.10;
  // Without a keeper: a thread that was blocked, and by its event's page has not run since, is
  // looked at again after this time. So long it may wait for a CPU and still be called blocked.
  int64_t state_holds_ns = 40'000'000;
  // What the kernel keeps of a running thread is read up to this age; older than that is read(2),
  // which interrupts its CPU. The kernel's tick is 1 to 10 ms, but for CPUs without one
  // (nohz_full).
  int64_t oldest_ns = 12'000'000;
};

// Made by the control thread, then the tick thread's. Its functions allocate nothing.
class VcpuSource {
 public:
  VcpuSource(kvm::VcpuGroups groups, kvm::ThreadScheduling scheduling);

  // Begins to count. Returns 0 or errno.
  int Enable();
  // Once enabled: from now on what `keeper` keeps of thread `tid` is read first, where there is
  // one.
  void KeepBy(kvm::ThreadKeeper* keeper, pid_t tid);
  bool IsKept() const { return !held_.records().empty(); }

  // Counters and times of its groups, all or errno. `now_ns` is the clock, read before; it is read
  // again, by `clock_ns`, where a system call took time. `further`: one per group after the first.
  int ReadCounters(const ReadPolicy& policy, int64_t& now_ns, int64_t (*clock_ns)(),
                   core::VcpuSample& out, std::span<core::GroupSample> further);

  // Then, into the same sample: scheduler times and, where hardly anything ran, the thread's state.
  // True where the thread has exited. `further` as ReadCounters has filled it.
  bool ReadScheduling(const ReadPolicy& policy, core::VcpuSample& out,
                      std::span<const core::GroupSample> further);

 private:
  // What was found of the sample under way in what the kernel keeps.
  enum class Kept : uint8_t {
    kNothing,
    kScheduling,  // times and state, but counters that are too old
    kAll,
    kRested,  // nothing was copied: it has been at rest all the time
  };

  Kept TakeKept(const ReadPolicy& policy, int64_t now_ns, core::VcpuSample& out,
                std::span<core::GroupSample> further);
  // Whether it has been at rest since before its last reading, so that its counters still are what
  // they were then.
  bool HasRested(const ReadPolicy& policy, int64_t now_ns) const;
  // The last values once more: nothing has changed since, or nothing newer is known.
  void Repeat(core::VcpuSample& out, std::span<core::GroupSample> further) const;
  // By schedstat and stat, as far as they may have changed.
  void ReadFiles(const ReadPolicy& policy, bool wants_state, core::VcpuSample& out);

  kvm::VcpuGroups groups_;  // the main one first
  kvm::ThreadScheduling scheduling_;
  kvm::HeldThread held_;
  kvm::EventPage page_;  // where nothing is held
  std::array<kvm::KeptRecord, kvm::kKeptGroups> records_{};
  Kept kept_ = Kept::kNothing;

  // The last sample, with the thread's state even where that did not go into the sample. Its
  // read_end_ns is 0 where there was none.
  core::VcpuSample last_;
  std::vector<core::GroupSample> last_further_;
  core::ThreadState state_ = core::ThreadState::kNotRead;  // as far as it was asked for
  int64_t state_read_ns_ = 0;                              // when `stat` said so
  // The page's count when `stat` said that the thread was at rest, and whether the counters were
  // read at that count since.
  std::optional<uint32_t> changes_at_rest_;
  bool read_at_rest_ = false;
};

}  // namespace vcpulse::sampler

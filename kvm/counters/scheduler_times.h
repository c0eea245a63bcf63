#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "kvm/base/fd.h"
#include "kvm/counters/perf_events.h"

namespace vcpulse::kvm {

// Cumulative times of one thread from /proc/PID/task/TID/schedstat (Documentation/scheduler/
// sched-stats.rst), ns. run is booked each scheduler tick, run_delay when a waiting thread gets a
// CPU.
struct SchedulerTimes {
  uint64_t run_ns = 0;
  uint64_t run_delay_ns = 0;
};

// The scheduler's view of one vCPU thread: its schedstat descriptor is kept open and read with one
// pread(2); its state is read from `stat` only when asked for.
class ThreadScheduling {
 public:
  // Errors: NotFound where the thread is gone, else what open(2) said. `root` as in Discovery.
  static absl::StatusOr<ThreadScheduling> Open(const std::string& root, pid_t pid, pid_t tid);

  ThreadScheduling() = default;

  // One pread(2). ESRCH where the thread has exited. Allocates nothing.
  OrErrno<SchedulerTimes> Read() const;

  // The state letter of `stat` (field 3), or ESRCH where the thread has exited. One pread(2) of a
  // descriptor kept open. Allocates nothing.
  OrErrno<char> State() const;

 private:
  Fd schedstat_;
  Fd stat_;
};

}  // namespace vcpulse::kvm

#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <string>

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

// The scheduler's view of one vCPU thread: two descriptors kept open, `schedstat` for its times and
// `stat` for its state, each read with one pread(2) when asked for. Either works without the other.
class ThreadScheduling {
 public:
  // A file that this kernel or user does not give is left out, and a thread that is gone opens all
  // the same: the reads answer so. Errors: those that MeansShortage. `root` as in Discovery.
  static OrErrno<ThreadScheduling> Open(const std::string& root, pid_t pid, pid_t tid);

  ThreadScheduling() = default;

  // Errors: ESRCH where the thread has exited, ENODATA where this kernel keeps no schedstats, else
  // the errno of open(2) or pread(2). Allocates nothing.
  OrErrno<SchedulerTimes> Read() const;

  // The state letter of `stat` (field 3). Errors: ESRCH where the thread has exited, else the errno
  // of open(2) or pread(2). Allocates nothing.
  OrErrno<char> State() const;

 private:
  // A file, or the errno of opening it.
  struct File {
    Fd fd;
    int error = ESRCH;
  };

  static File OpenFile(const std::string& path);

  File schedstat_;
  File stat_;
};

}  // namespace vcpulse::kvm

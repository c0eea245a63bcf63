#pragma once

// Which threads had the CPU while a vCPU wanted to run: sched:sched_switch on the CPU for which it
// waits. One thread.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/counters/perf_events.h"
#include "kvm/vm.h"

namespace vcpulse::kvm {

// A thread that ran while the vCPU waited.
struct Competitor {
  pid_t tid = 0;  // 0: none, the CPU was idle (as where a quota of the vCPU's cgroup is used up)
  pid_t pid = 0;  // its process; 0: it has ended since
  std::string thread_name;   // comm
  std::string process_name;  // comm; empty where it is not known, or the thread is its first
  bool is_kernel = false;    // a thread of the kernel
  std::string vm;            // of which that process is the VMM; else empty
  uint64_t ns = 0;           // of the vCPU's waiting
};

struct WaitAccount {
  uint64_t waited_ns = 0;        // that was seen, by whom or not
  uint64_t unattributed_ns = 0;  // thereof while it is not known who ran
  // What the scheduler says (schedstat) that it waited; booked when a wait ends.
  std::optional<uint64_t> run_delay_ns;
  uint64_t lost = 0;                    // records that the kernel had no room for
  std::vector<int> cpus;                // for which it waited or on which it ran, ascending
  std::vector<Competitor> competitors;  // most time first; the largest kMostCompetitors
};

inline constexpr size_t kMostCompetitors = 16;

class CompetitorSampler {
 public:
  // Begins, of the only vCPU of `vm`. `root` as in Discovery. Errors: why it cannot be had, in one
  // line.
  static absl::StatusOr<std::unique_ptr<CompetitorSampler>> Open(PerfEvents& perf, const Vm& vm,
                                                                 const std::string& root);
  virtual ~CompetitorSampler() = default;

  // Takes in what happened so far; called ten times a second. Errors: of what cannot be read on.
  virtual absl::Status Collect() = 0;
  // Ends it.
  virtual WaitAccount Stop() = 0;
};

}  // namespace vcpulse::kvm

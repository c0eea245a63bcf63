#pragma once

// What the scheduler did, decoded from records of its tracepoints. Pure.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kvm/competitors/wait_ledger.h"
#include "kvm/tracing/sample_records.h"
#include "kvm/tracing/tracepoint_format.h"

namespace vcpulse::kvm {

// One thing to tell a ledger.
struct SchedulerEvent {
  enum class Kind : uint8_t {
    kGotCpu,
    kLostCpu,
    kWoken,
    kRunnable,
    kSwitched,
    kRuns,
    kMissed,
  };

  uint64_t at_ns = 0;
  Kind kind = Kind::kSwitched;
  bool waits = false;  // of kLostCpu
  int cpu = 0;
  pid_t tid = 0;   // of kSwitched the thread from which, of kRuns the one that does
  pid_t next = 0;  // of kSwitched

  void Tell(WaitLedger& ledger) const;
};

// The records of sched:sched_switch, sched:sched_wakeup and of samples by a clock, all in one ring.
class SchedulerRecords {
 public:
  // Errors: Unimplemented where a field that is needed is not there.
  static absl::StatusOr<SchedulerRecords> From(const TracepointFormat& on_switch,
                                               const TracepointFormat& on_wakeup);

  uint64_t switch_id() const { return switch_id_; }
  uint64_t wakeup_id() const { return wakeup_id_; }

  // What it says, on this CPU; nothing of the wake-up of another thread than `tid`, and of a record
  // that makes no sense. `name` is handed the names of threads.
  std::optional<SchedulerEvent> Decode(
      const RawSample& sample, int cpu, pid_t tid,
      absl::FunctionRef<void(pid_t tid, std::string_view name)> name) const;

 private:
  using Field = TracepointFormat::Field;

  uint64_t switch_id_ = 0;
  uint64_t wakeup_id_ = 0;
  Field type_;  // in each record, the tracepoint's id
  Field prev_pid_;
  Field next_pid_;
  std::optional<Field> prev_name_;
  std::optional<Field> next_name_;
  Field woken_pid_;
  Field target_cpu_;
};

}  // namespace vcpulse::kvm

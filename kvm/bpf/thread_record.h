#ifndef VCPULSE_KVM_BPF_THREAD_RECORD_H
#define VCPULSE_KVM_BPF_THREAD_RECORD_H

// What the kernel program keeps of one thread, shared by it (C, keep_threads.bpf.c) and its reader
// (C++, thread_keeper.h): two cache lines that the program writes and its reader maps.

#ifdef __cplusplus
#include <cstdint>
namespace vcpulse::kvm {
#define VCPULSE_U32 uint32_t
#define VCPULSE_U64 uint64_t
#else
#define VCPULSE_U32 __u32
#define VCPULSE_U64 __u64
#endif

// States of a thread. Unknown until the first thing that happens to it.
enum KeptState {
  KEPT_UNKNOWN = 0,
  KEPT_RUNNING = 1,  // on a CPU
  KEPT_WAITING = 2,  // runnable, waits for a CPU
  KEPT_BLOCKED = 3,
  KEPT_IO_WAIT = 4,  // blocked, uninterruptible
  KEPT_STOPPED = 5,  // by a signal or a debugger
  KEPT_EXITED = 6,
};

enum {
  kKeptEvents = 8,  // counters of one group at most
  // Groups of one thread at most: one per core PMU of a hybrid CPU. Each more makes the kernel's
  // verifier look at all of it once more.
  kKeptGroups = 2,
  kKeptRecords = 16384,  // groups of threads at most
};

// Times are of CLOCK_MONOTONIC or the scheduler's own (schedstat), ns, cumulative as read(2) gives
// them. A thread with several groups has a record for each, one after the other.
struct KeptRecord {
  VCPULSE_U32 sequence;      // odd while the program writes
  VCPULSE_U32 state;         // KeptState
  VCPULSE_U32 cpu;           // where it runs or ran last
  VCPULSE_U32 tid;           // whose record it is
  VCPULSE_U64 since_ns;      // when the state began
  VCPULSE_U64 taken_ns;      // the instant of all below; 0: there is nothing so far
  VCPULSE_U64 run_ns;        // as schedstat's first
  VCPULSE_U64 run_delay_ns;  // as its second; without the wait that goes on
  VCPULSE_U64 enabled_ns;
  VCPULSE_U64 running_ns;
  VCPULSE_U64 counts[kKeptEvents];
};

// Which records are a thread's; its key is the thread's number (the kernel's pid).
struct KeptPlace {
  VCPULSE_U32 first;                // record
  VCPULSE_U32 groups;               // and how many follow each other
  VCPULSE_U32 events[kKeptGroups];  // counters of each
};

#undef VCPULSE_U32
#undef VCPULSE_U64

#ifdef __cplusplus
static_assert(sizeof(KeptRecord) == 128, "two cache lines");
}  // namespace vcpulse::kvm
#endif

#endif  // VCPULSE_KVM_BPF_THREAD_RECORD_H

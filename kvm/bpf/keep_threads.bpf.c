// The program inside the kernel: at each switch, wake-up and scheduler tick it copies the counters,
// times and state of the threads that are held into records that vcpulse maps (thread_record.h).
// It sends nothing and interrupts no CPU: it runs where the kernel already is.
//
// All of a thread's events come with the lock of its run queue held, so a record has one writer at
// a time. No vmlinux.h: the few fields used are named here, and libbpf finds their places in the
// running kernel's types (CO-RE).

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kvm/bpf/thread_record.h"

char LICENSE[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sched_entity {
  __u64 sum_exec_runtime;
  unsigned char sched_delayed;  // from 6.12 on
};
struct sched_info {
  unsigned long long run_delay;
};
struct task_struct {
  int pid;
  int on_cpu;
  int on_rq;
  unsigned int __state;  // from 5.14 on
  struct sched_entity se;
  struct sched_info sched_info;
};
#pragma clang attribute pop

// Bits of task_struct::__state (include/linux/sched.h), the same since 4.14.
enum {
  kUninterruptible = 0x02,
  kStoppedOrTraced = 0x04 | 0x08,
  kDead = 0x80,
  kNoLoad = 0x400,  // with kUninterruptible: idle
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, kKeptRecords);
  __type(key, __u32);
  __type(value, struct KeptRecord);
} vcp_records SEC(".maps");

// Counter k of record r is entry r * kKeptEvents + k.
struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(max_entries, kKeptRecords* kKeptEvents);
  __type(key, __u32);
  __type(value, __u32);
} vcp_counters SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, kKeptRecords);
  __type(key, __u32);
  __type(value, struct KeptPlace);
} vcp_places SEC(".maps");

// A full barrier on each side: the reader sees an odd number, or all of what it encloses.
static __always_inline void Begin(struct KeptRecord* record) {
  __sync_lock_test_and_set(&record->sequence, record->sequence | 1);
}
static __always_inline void End(struct KeptRecord* record) {
  __sync_lock_test_and_set(&record->sequence, (record->sequence | 1) + 1);
}

// Nothing where the record is another thread's by now, or this one's number was one that has exited.
static __always_inline struct KeptRecord* RecordOf(struct task_struct* task, __u32 index) {
  struct KeptRecord* record = bpf_map_lookup_elem(&vcp_records, &index);
  if (!record || record->tid != (__u32)task->pid || record->state == KEPT_EXITED) return 0;
  return record;
}

static __always_inline struct KeptPlace* PlaceOf(struct task_struct* task) {
  __u32 tid = task->pid;
  return bpf_map_lookup_elem(&vcp_places, &tid);
}

// Where the waits that are added to it begin: at the kernel's own sum, if it keeps one.
static __always_inline void CopyFirstDelay(struct KeptRecord* record, struct task_struct* task) {
  if (record->state == KEPT_UNKNOWN && bpf_core_field_exists(task->sched_info.run_delay)) {
    record->run_delay_ns = task->sched_info.run_delay;
  }
}

// The counters of one group of the thread that runs on this CPU. False where the kernel gives one not.
static __always_inline bool CopyCounters(struct KeptRecord* record, __u32 index, __u32 events) {
  struct bpf_perf_event_value value;
  for (__u32 k = 0; k < kKeptEvents; ++k) {
    if (k >= events) break;
    if (bpf_perf_event_read_value(&vcp_counters, (__u64)index * kKeptEvents + k, &value,
                                  sizeof(value)) != 0) {
      return false;
    }
    record->counts[k] = value.counter;
    if (k == 0) {
      record->enabled_ns = value.enabled;
      record->running_ns = value.running;
    }
  }
  return true;
}

// `task` runs on this CPU. All of it anew, in the state that it is in from now on.
static __always_inline void Keep(struct task_struct* task, const struct KeptPlace* place,
                                 __u32 state, __u64 now_ns) {
  for (__u32 g = 0; g < kKeptGroups; ++g) {
    if (g >= place->groups) break;
    __u32 index = place->first + g;
    struct KeptRecord* record = RecordOf(task, index);
    if (!record) return;
    Begin(record);
    CopyFirstDelay(record, task);
    record->run_ns = task->se.sum_exec_runtime;
    bool whole = CopyCounters(record, index, place->events[g]);
    if (record->state != state) {
      record->state = state;
      record->since_ns = now_ns;
    }
    record->cpu = bpf_get_smp_processor_id();
    record->taken_ns = whole ? now_ns : 0;
    End(record);
  }
}

// The state alone: its counters stand still.
static __always_inline void Enter(struct task_struct* task, const struct KeptPlace* place,
                                  __u32 state, __u64 now_ns) {
  for (__u32 g = 0; g < kKeptGroups; ++g) {
    if (g >= place->groups) break;
    struct KeptRecord* record = RecordOf(task, place->first + g);
    if (!record) return;
    Begin(record);
    CopyFirstDelay(record, task);
    if (state == KEPT_RUNNING && record->state == KEPT_WAITING && now_ns > record->since_ns) {
      record->run_delay_ns += now_ns - record->since_ns;
    }
    if (state == KEPT_RUNNING) {
      record->cpu = bpf_get_smp_processor_id();
      // Values that there are hold until now. Where there are none they come with the next tick.
      if (record->taken_ns != 0) record->taken_ns = now_ns;
    }
    record->state = state;
    record->since_ns = now_ns;
    End(record);
  }
}

// Whether it leaves its CPU for something, and not for another thread.
static __always_inline __u32 StateOf(bool preempted, struct task_struct* task) {
  __u32 state = task->__state;
  if (state & kDead) return KEPT_EXITED;
  bool delayed = bpf_core_field_exists(task->se.sched_delayed) && task->se.sched_delayed;
  if (preempted || (task->on_rq != 0 && !delayed)) return KEPT_WAITING;
  if (state & kStoppedOrTraced) return KEPT_STOPPED;
  if ((state & kUninterruptible) && !(state & kNoLoad)) return KEPT_IO_WAIT;
  return KEPT_BLOCKED;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(vcp_switch, bool preempted, struct task_struct* from, struct task_struct* to) {
  __u64 now_ns = 0;
  struct KeptPlace* place = PlaceOf(from);
  if (place) {
    now_ns = bpf_ktime_get_ns();
    Keep(from, place, StateOf(preempted, from), now_ns);
  }
  place = PlaceOf(to);
  if (place) Enter(to, place, KEPT_RUNNING, now_ns ? now_ns : bpf_ktime_get_ns());
  return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(vcp_wakeup, struct task_struct* task) {
  // One that runs, and wakes itself or is woken on its way to sleep: it never left.
  if ((__u32)bpf_get_current_pid_tgid() == (__u32)task->pid) return 0;
  if (bpf_core_field_exists(task->on_cpu) && task->on_cpu) return 0;
  struct KeptPlace* place = PlaceOf(task);
  if (!place) return 0;
  struct KeptRecord* record = RecordOf(task, place->first);
  if (!record || record->state == KEPT_WAITING) return 0;
  Enter(task, place, KEPT_WAITING, bpf_ktime_get_ns());
  return 0;
}

// At each scheduler tick, and whenever else the kernel books the time that a thread ran.
SEC("tp_btf/sched_stat_runtime")
int BPF_PROG(vcp_runtime, struct task_struct* task) {
  if ((__u32)bpf_get_current_pid_tgid() != (__u32)task->pid) return 0;  // of another CPU
  struct KeptPlace* place = PlaceOf(task);
  if (place) Keep(task, place, KEPT_RUNNING, bpf_ktime_get_ns());
  return 0;
}

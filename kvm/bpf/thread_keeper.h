#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kvm/bpf/thread_record.h"
#include "kvm/counters/counter_group.h"

namespace vcpulse::kvm {

class HeldThread;

// Keeps the latest values of threads where they can be read without a system call. One thread.
class ThreadKeeper {
 public:
  virtual ~ThreadKeeper() = default;

  // Keeps the values of this thread from now on, in place of an earlier one of the same thread.
  // Empty where there is no room, or the kernel refuses. The groups are enabled, and outlive it.
  virtual HeldThread Hold(pid_t tid, std::span<const CounterGroup> groups) = 0;
  // Gives up what `held` stands for.
  virtual void Release(const HeldThread& held) = 0;
};

// One thread whose counters, times and state are kept; nothing is kept of an empty one. Made and
// destroyed by one thread, read by another.
class HeldThread {
 public:
  HeldThread() = default;
  // `records`: one per group. `is_current` turns false when another one takes its place: from then
  // on its records say nothing. All must outlive it; without a keeper nothing is released.
  HeldThread(ThreadKeeper* keeper, pid_t tid, std::span<const KeptRecord> records,
             const std::atomic<bool>* is_current)
      : keeper_(keeper), tid_(tid), records_(records), is_current_(is_current) {}
  ~HeldThread();

  HeldThread(HeldThread&& other) noexcept;
  HeldThread& operator=(HeldThread&& other) noexcept;

  // Copies the records; `copies` has room for kKeptGroups. False where they have no values of one
  // instant: read it by other means. The first of `copies` then still tells its state, if it could
  // be copied. Allocates nothing, makes no system call; takes up to 50 us where the program that
  // writes has lost its CPU.
  bool CopyTo(std::span<KeptRecord> copies) const;
  // Whether nothing has happened to it since `copy` of its first record was taken.
  bool IsStillAs(const KeptRecord& copy) const;

  pid_t tid() const { return tid_; }
  std::span<const KeptRecord> records() const { return records_; }

 private:
  ThreadKeeper* keeper_ = nullptr;
  pid_t tid_ = 0;
  std::span<const KeptRecord> records_;
  const std::atomic<bool>* is_current_ = nullptr;
};

}  // namespace vcpulse::kvm

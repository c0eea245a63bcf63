#pragma once

// Who was on the CPU while one thread waited for it, from what the scheduler did. Pure.

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace vcpulse::kvm {

// What happened is said in the order of time, ns of one clock: whether the thread runs or waits by
// its own switches, and who runs on CPUs by theirs. Where something was missed, waiting is
// attributed to nobody.
class WaitLedger {
 public:
  explicit WaitLedger(pid_t tid) : tid_(tid) {}

  // The thread got this CPU.
  void GotCpu(uint64_t at_ns, int cpu);
  // It lost it. `waits`: it could have run on.
  void LostCpu(uint64_t at_ns, int cpu, bool waits);
  // It was woken up and queued on this CPU.
  void Woken(uint64_t at_ns, int cpu);
  // It runs on this CPU or waits for it: a look at its state says no more.
  void Runnable(uint64_t at_ns, int cpu);

  // A CPU went from one thread to the next; TID 0 is the idle task.
  void Switched(uint64_t at_ns, int cpu, pid_t prev, pid_t next);
  // This one runs on the CPU.
  void Runs(uint64_t at_ns, int cpu, pid_t tid);
  // Not all that happened on this CPU up to now was said.
  void Missed(uint64_t at_ns, int cpu);

  // Ends the account.
  void End(uint64_t at_ns);

  // How long it waited while this one ran, by TID.
  const std::map<pid_t, uint64_t>& waited_ns() const { return waited_ns_; }
  // How long it waited while it is not known who ran.
  uint64_t unattributed_ns() const { return unattributed_ns_; }

 private:
  enum class State : uint8_t {
    kUnknown,
    kRunnable,  // it runs or waits
    kRunning,
    kWaiting,
    kBlocked,
  };

  // Books what passed since the last time, while it waited.
  void Book(uint64_t at_ns);
  void Wait(uint64_t at_ns, int cpu);

  const pid_t tid_;
  State state_ = State::kUnknown;
  int cpu_ = -1;             // where it runs or waits
  uint64_t booked_ns_ = 0;   // up to when, while it is kRunnable or waits
  std::map<int, pid_t> on_;  // who is on each CPU, where that is known
  std::map<pid_t, uint64_t> waited_ns_;
  uint64_t unattributed_ns_ = 0;
};

}  // namespace vcpulse::kvm

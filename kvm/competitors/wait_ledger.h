#pragma once

// Who was on the CPU while one thread waited for it, from what the scheduler did there. Pure.

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace vcpulse::kvm {

// What happened is told in the order of time, ns of one clock. Where something was missed, the time
// until the thread is seen again is nobody's: it is not guessed at.
class WaitLedger {
 public:
  explicit WaitLedger(pid_t tid) : tid_(tid) {}

  // A CPU went from one thread to the next; TID 0 is the idle task. `prev_waits`: it could have run
  // on.
  void Switched(uint64_t at_ns, int cpu, pid_t prev, bool prev_waits, pid_t next);
  // The thread was woken up and queued on this CPU.
  void Woken(uint64_t at_ns, int cpu);
  // This one runs on the CPU.
  void Runs(uint64_t at_ns, int cpu, pid_t tid);
  // The thread runs on this CPU or waits for it.
  void Runnable(uint64_t at_ns, int cpu);
  // What happened on this CPU up to now was not all told.
  void Missed(uint64_t at_ns, int cpu);
  // Ends the account.
  void End(uint64_t at_ns);

  // How long it waited while this one ran, by TID.
  const std::map<pid_t, uint64_t>& waited_ns() const { return waited_ns_; }
  // How long it waited while it is not known who ran.
  uint64_t unseen_ns() const { return unseen_ns_; }

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
  uint64_t unseen_ns_ = 0;
};

}  // namespace vcpulse::kvm

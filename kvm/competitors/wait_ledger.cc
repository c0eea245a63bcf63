#include "kvm/competitors/wait_ledger.h"

namespace vcpulse::kvm {

void WaitLedger::Book(uint64_t at_ns) {
  if (state_ != State::kWaiting || at_ns <= booked_ns_) return;
  const auto who = on_.find(cpu_);
  const uint64_t waited_ns = at_ns - booked_ns_;
  (who == on_.end() ? unseen_ns_ : waited_ns_[who->second]) += waited_ns;
  booked_ns_ = at_ns;
}

void WaitLedger::Wait(uint64_t at_ns, int cpu) {
  state_ = State::kWaiting;
  cpu_ = cpu;
  booked_ns_ = at_ns;
}

void WaitLedger::Switched(uint64_t at_ns, int cpu, pid_t prev, bool prev_waits, pid_t next) {
  if (prev == tid_) {
    on_[cpu] = next;
    state_ = State::kBlocked;
    if (prev_waits) Wait(at_ns, cpu);
    return;
  }
  on_[cpu] = prev;
  // Another one ran there up to now: so it waited.
  if (state_ == State::kRunnable && cpu_ == cpu) state_ = State::kWaiting;
  if (cpu_ == cpu || next == tid_) Book(at_ns);
  on_[cpu] = next;
  if (next != tid_) return;
  state_ = State::kRunning;
  cpu_ = cpu;
}

void WaitLedger::Woken(uint64_t at_ns, int cpu) {
  if (state_ == State::kBlocked || state_ == State::kUnknown) Wait(at_ns, cpu);
}

void WaitLedger::Runs(uint64_t at_ns, int cpu, pid_t tid) {
  if (tid == tid_) {
    Book(at_ns);
    state_ = State::kRunning;
    cpu_ = cpu;
  } else if (cpu_ == cpu) {
    on_.try_emplace(cpu, tid);
    if (state_ == State::kRunnable) state_ = State::kWaiting;
    Book(at_ns);
    if (state_ == State::kRunning) state_ = State::kUnknown;
  }
  on_[cpu] = tid;
}

void WaitLedger::Runnable(uint64_t at_ns, int cpu) {
  const bool is_elsewhere = cpu_ != cpu;
  if (state_ == State::kWaiting && is_elsewhere) {
    Book(at_ns);
    cpu_ = cpu;
  } else if (state_ == State::kUnknown || state_ == State::kBlocked || is_elsewhere) {
    state_ = State::kRunnable;
    cpu_ = cpu;
    booked_ns_ = at_ns;
  }
}

void WaitLedger::Missed(uint64_t at_ns, int cpu) {
  on_.erase(cpu);
  if (cpu_ != cpu) return;
  Book(at_ns);
  state_ = State::kUnknown;
}

void WaitLedger::End(uint64_t at_ns) {
  Book(at_ns);
  state_ = State::kUnknown;
}

}  // namespace vcpulse::kvm

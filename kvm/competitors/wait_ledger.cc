#include "kvm/competitors/wait_ledger.h"

namespace vcpulse::kvm {

void WaitLedger::Book(uint64_t at_ns) {
  if (state_ != State::kWaiting || at_ns <= booked_ns_) return;
  const uint64_t waited_ns = at_ns - booked_ns_;
  booked_ns_ = at_ns;
  const auto who = on_.find(cpu_);
  if (who == on_.end()) {
    unattributed_ns_ += waited_ns;
  } else if (who->second != tid_) {  // it is just being switched to
    waited_ns_[who->second] += waited_ns;
  }
}

void WaitLedger::Wait(uint64_t at_ns, int cpu) {
  state_ = State::kWaiting;
  cpu_ = cpu;
  booked_ns_ = at_ns;
}

void WaitLedger::GotCpu(uint64_t at_ns, int cpu) {
  Book(at_ns);
  state_ = State::kRunning;
  cpu_ = cpu;
}

void WaitLedger::LostCpu(uint64_t at_ns, int cpu, bool waits) {
  Book(at_ns);  // nothing, unless a record was lost
  if (waits) return Wait(at_ns, cpu);
  state_ = State::kBlocked;
  cpu_ = cpu;
}

void WaitLedger::Woken(uint64_t at_ns, int cpu) {
  if (state_ == State::kBlocked || state_ == State::kUnknown) Wait(at_ns, cpu);
}

void WaitLedger::Runnable(uint64_t at_ns, int cpu) {
  if (state_ == State::kWaiting) {
    Book(at_ns);
    cpu_ = cpu;
  } else if (state_ == State::kUnknown || state_ == State::kBlocked) {
    state_ = State::kRunnable;
    cpu_ = cpu;
    booked_ns_ = at_ns;
  }
}

void WaitLedger::Switched(uint64_t at_ns, int cpu, pid_t prev, pid_t next) {
  if (prev != tid_) on_[cpu] = prev;
  if (cpu == cpu_) {
    // Another one ran there up to now: so it waited.
    if (state_ == State::kRunnable && prev != tid_) state_ = State::kWaiting;
    Book(at_ns);
  }
  on_[cpu] = next;
}

void WaitLedger::Runs(uint64_t at_ns, int cpu, pid_t tid) {
  on_.try_emplace(cpu, tid);
  if (cpu == cpu_) {
    if (state_ == State::kRunnable && tid != tid_) state_ = State::kWaiting;
    Book(at_ns);
  }
  on_[cpu] = tid;
}

void WaitLedger::Missed(uint64_t at_ns, int cpu) {
  on_.erase(cpu);
  if (cpu == cpu_) Book(at_ns);
}

void WaitLedger::End(uint64_t at_ns) {
  Book(at_ns);
  state_ = State::kUnknown;
}

}  // namespace vcpulse::kvm

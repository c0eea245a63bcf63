#pragma once

#include <pthread.h>

#include <csignal>
#include <cstdint>

#include "absl/status/status.h"

namespace vcpulse {

// While it lives, this thread takes no signal but those of a crash. Threads that it starts
// meanwhile never do: signals are for those that wait for them. A signal to the process that no
// thread takes comes once one does again.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
      sigdelset(&all, fault);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

// From now on SIGINT, SIGTERM and SIGHUP end a wait instead of the process. Call it once, before
// any wait.
void StopWaitsOnSignals();

// Whether such a signal came.
bool WasStopped();

// Sleeps until that instant of CLOCK_MONOTONIC, to some microseconds. Cancelled where a signal said
// stop, before or within.
absl::Status WaitUntil(int64_t mono_ns);

}  // namespace vcpulse

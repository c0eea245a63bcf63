#pragma once

// Telling a paused guest from a halted one. Both block their vCPU threads with nothing run: a
// halted vCPU waits inside KVM_RUN, one that its VMM holds (QMP `stop`, a monitor's pause) waits in
// the VMM's own code. The kernel shows where in /proc/PID/task/TID/wchan.

#include <sys/types.h>

#include <string>
#include <string_view>

#include "kvm/vm.h"

namespace vcpulse::kvm {

// Where a blocked vCPU thread waits.
enum class WaitPlace {
  kKvm,        // inside KVM_RUN: halted
  kUserspace,  // on a futex: the VMM holds it
  kUnknown,    // not shown to this user, running by now, or neither of the two
};

// From the text of a wchan file, the name of the kernel function (Linux fs/proc/base.c,
// proc_pid_wchan): `kvm_*` (kvm_vcpu_block, kvm_vcpu_halt) is inside KVM_RUN, `futex_*`
// (futex_wait_queue_me to 5.15, futex_wait_queue, futex_do_wait from 6.14) outside. "0", what the
// kernel shows without the right to ptrace and for a running thread, is unknown.
WaitPlace ParseWchan(std::string_view text);

// The same of one thread now. `root` as in Discovery. Control thread: it may block for a moment.
WaitPlace ReadWaitPlace(const std::string& root, pid_t pid, pid_t tid);

// Why a paused VM cannot be told from a halted one here, for people; "" where it can. The right to
// read wchan is seen by whether any blocked thread of the VMM shows one.
std::string WhyPauseCannotBeTold(const std::string& root, const Vm& vm);

}  // namespace vcpulse::kvm

#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

namespace vcpulse {

// The CPUs that the calling thread may run on, ascending. At least one.
std::vector<int> OwnCpus();

// Has a thread (0: the calling one) run on these CPUs alone from now on; a thread that runs is
// moved at once. False where the kernel refuses it: none of them is online or allowed, or the
// thread is another user's.
bool KeepToCpus(pid_t tid, std::span<const int> cpus);

}  // namespace vcpulse

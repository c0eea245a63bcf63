#pragma once

// QMP commands that change a guest, for tests. (vcpulse itself only asks.)

#include <sys/types.h>

#include <string>
#include <vector>

namespace vcpulse::kvm_tests {

// Runs one command, given as a JSON object, at `unix:PATH`: connects, runs it, closes. The answer's
// line; a failed expectation where QEMU answers with an error or not at all.
std::string Qmp(const std::string& address, const std::string& command);

// Thread ids of query-cpus-fast by cpu-index, as QEMU tells them.
std::vector<pid_t> QmpTids(const std::string& address);

}  // namespace vcpulse::kvm_tests

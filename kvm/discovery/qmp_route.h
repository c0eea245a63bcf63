#pragma once

// From what QMP says to threads of this host. QEMU's TIDs are those of its own PID namespace.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvm/discovery/qmp_client.h"
#include "kvm/proc_tree.h"
#include "kvm/vm.h"

namespace vcpulse::kvm {

// The vCPUs as threads of process `pid`, or nothing where it lacks one of the TIDs.
std::optional<std::vector<Vcpu>> MapQmpCpus(const ProcTree& tree, pid_t pid,
                                            const std::vector<QmpCpu>& cpus);

// The process that gave this reply: who listens on the socket, else the VMM that has threads of
// these TIDs and contradicts neither name nor UUID. Errors name `address`: NotFound (none is
// visible here), InvalidArgument (several could be it).
absl::StatusOr<pid_t> FindQmpProcess(const ProcTree& tree, const std::string& address,
                                     const QmpReply& reply);

}  // namespace vcpulse::kvm

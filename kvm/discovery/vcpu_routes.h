#pragma once

// The routes that need nobody's help, as pure functions of what was read of one VMM process: KVM
// debugfs, thread names, libvirt's cgroups, guest time. Values in, values out.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kvm/proc_tree.h"
#include "kvm/vm.h"

namespace vcpulse::kvm {

// What was read of one VMM process.
struct VmView {
  KvmDescriptors descriptors;
  std::vector<DebugfsVcpu> debugfs;
  std::vector<Thread> threads;
  std::map<pid_t, int> cgroup_vcpus;  // by TID; empty where the VMM is not libvirt's
};

VmView ReadVmView(const ProcTree& tree, pid_t pid);

// The vCPUs that debugfs, thread names and libvirt's cgroups show together; where there are none,
// the threads that have guest time, by age. A vCPU's index is the number in its thread's name, else
// that of its cgroup, else its rank among KVM's vcpu ids.
std::vector<Vcpu> FindVcpuThreads(const VmView& view);

// The VMM's own indexes of these threads, by their names, else by their cgroups; nothing where
// neither tells all of them apart.
std::optional<std::vector<int>> KnownIndexes(const std::vector<Vcpu>& vcpus, const VmView& view);

// Fills in, for vCPUs of which index, TID and `found_by` are known: start time, proof and KVM id.
// Those whose thread is gone are left out. The result is ascending by index.
std::vector<Vcpu> CompleteVcpus(std::vector<Vcpu> vcpus, const VmView& view);

// What a person should know of the result, in whole sentences. `qmp_addresses` are those that the
// VMM's command line shows.
std::vector<std::string> DiscoveryNotes(const std::vector<Vcpu>& vcpus, const VmView& view,
                                        const std::vector<std::string>& qmp_addresses);

}  // namespace vcpulse::kvm

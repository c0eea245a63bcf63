#pragma once

// Do the VMs that run now show their vCPUs, and are there descriptors enough for them?

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kvm/doctor/finding.h"
#include "kvm/own_rights.h"
#include "kvm/vm.h"

namespace vcpulse::kvm::doctor {

// Connects to a QMP address, asks and closes: OK, or why not (as QueryQmp).
using QmpAsker = std::function<absl::Status(const std::string& address)>;

// A VM and what its command line says.
struct SeenVm {
  Vm vm;
  bool qemu = false;
  bool debug_threads = false;
  std::vector<std::string> qmp_addresses;  // as they may be connected to from here
  // kvm-vcpu descriptors for which no thread was found, and which nothing shows to be unplugged.
  int unexplained_descriptors = 0;
};

// Reads the command lines of these VMs. A socket's path is looked for in its QEMU's own root and
// folder, ROOT/proc/PID/root and cwd; an absolute one as it is where that root may not be followed.
std::vector<SeenVm> LookAt(const std::string& root, std::span<const Vm> vms);

// "guests" where no VM runs; else one "vcpus" per VM: an obstacle where KVM runs and no vCPU thread
// can be told, unknown where some may be missing: found by guest time, or descriptors without
// threads that nothing explains.
std::vector<Finding> CheckVms(std::span<const SeenVm> vms);

// "thread-names" for each QEMU that does not name its vCPU threads.
std::vector<Finding> CheckThreadNames(std::span<const SeenVm> vms);

// "qmp" for each address, at most `most` of them: a silent one is held by another client.
std::vector<Finding> CheckQmp(std::span<const SeenVm> vms, const QmpAsker& ask, size_t most);

// "descriptors": the hard limit against what all vCPUs take, where each takes `per_vcpu`.
Finding CheckDescriptors(const OwnRights& own, std::span<const Vm> vms, int per_vcpu);

}  // namespace vcpulse::kvm::doctor

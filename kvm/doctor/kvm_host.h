#pragma once

// Is KVM there, and what about it changes what the counters mean? From /proc and /sys below `root`
// (as in Discovery).

#include <string>

#include "kvm/doctor/finding.h"

namespace vcpulse::kvm::doctor {

// "kvm": the modules, or /dev/kvm where KVM is built in. vcpulse itself does not open /dev/kvm.
Finding CheckKvm(const std::string& root);

// "mediated-vpmu": whether open events could keep VMs from starting (Linux 7.0).
Finding CheckMediatedVpmu(const std::string& root);

// "nested": whether guests may run guests.
Finding CheckNested(const std::string& root);

// "virtual-host": whether this host is itself a guest, by the flag of /proc/cpuinfo (x86).
Finding CheckVirtualHost(const std::string& root);

// "debugfs": KVM's debugfs, which shows the vCPU threads of any VMM (x86).
Finding CheckDebugfs(const std::string& root);

}  // namespace vcpulse::kvm::doctor

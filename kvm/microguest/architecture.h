#pragma once

// What differs between the architectures: registers, page tables, and how a program leaves the
// guest. architecture_x86_64.cc, architecture_aarch64.cc; architecture_none.cc refuses.

#include <linux/kvm.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kvm/microguest/guest_memory.h"

namespace vcpulse::kvm::microguest {

// What KVM_CREATE_VM takes here.
unsigned long VmType(int kvm_fd);

// Once per VM, before its vCPUs. The page tables map addresses to themselves.
absl::Status PrepareVm(int vm_fd, const GuestMemory& memory, bool pause_exits);

// Once per vCPU.
absl::Status PrepareVcpu(int kvm_fd, int vm_fd, int vcpu_fd);

// The registers with which a program begins, at this guest address.
absl::Status SetRegisters(int vcpu_fd, uint64_t entry, uint64_t mailbox);

// Whether the guest was left by the last instruction of a program.
bool HasFinished(const kvm_run& run);

}  // namespace vcpulse::kvm::microguest

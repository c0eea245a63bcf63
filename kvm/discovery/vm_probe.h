#pragma once

// One process at a time: is it a VMM, of what name, and may its VM be measured. Used by all ways
// to find a VM.

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kvm/discovery/vcpu_routes.h"
#include "kvm/proc_tree.h"
#include "kvm/vm.h"

namespace vcpulse::kvm {

// The VM of this process without its vCPUs, or nothing where it is no VMM (or has ended): it must
// hold a kvm-vm descriptor or be a QEMU; where its descriptors may not be read, another known VMM
// with a vCPU thread will do. A QEMU whose descriptors show none runs TCG; one that was
// told to run KVM alone is still starting (kUnknown).
std::optional<Vm> IdentifyVm(const ProcTree& tree, pid_t pid);

// Whether the program of this process is a known VMM, with a VM or not yet.
bool RunsKnownVmm(const ProcTree& tree, pid_t pid);

// The accelerator that QEMU's thread names tell, if they do.
Accelerator AcceleratorByNames(const VmView& view);

// Fills in vCPUs, notes and, where it was unknown, the accelerator, by the routes that need
// nobody's help. Does nothing to a TCG VM.
void FillVcpus(const ProcTree& tree, Vm& vm);

// Replaces the vCPUs of `vm` by these, of which index, TID and `found_by` are known, completed.
void SetVcpus(const ProcTree& tree, const VmView& view, std::vector<Vcpu> vcpus, Vm& vm);

// OK, or why this VM cannot be measured: FailedPrecondition (TCG), Unavailable (still starting).
absl::Status MayBeMeasured(const Vm& vm);

// "VM 'NAME' (PID n)", for messages.
std::string Describe(const Vm& vm);

// A label as it may be shown and stored: control characters and bytes that are not UTF-8 become
// '?'. VMMs take any bytes as a name; terminals, JSON and protobuf do not.
std::string CleanLabel(std::string_view text);

// A UUID in lower case; "" for the null UUID, which QEMU shows where none was given.
std::string CleanUuid(std::string_view text);

}  // namespace vcpulse::kvm

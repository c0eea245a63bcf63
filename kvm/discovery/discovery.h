#pragma once

// Finds VMs and the host threads that run their vCPUs. Routes, in order: given TIDs, QMP, KVM
// debugfs, thread names, libvirt's cgroups, threads with guest time; each vCPU says how it was
// found and what proves it.

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kvm/discovery/non_vmm_cache.h"
#include "kvm/vm.h"

namespace vcpulse::kvm {

// Reads /proc and /sys below `root` ("/" for this machine), so that tests lay out a small tree.
// Stateless between calls; any thread. Every error message is one line that names what was asked
// for and says what to do.
class Discovery {
 public:
  explicit Discovery(std::string root = "/");

  // Every VMM on this host, ascending by PID, those without KVM (TCG) included. Processes that
  // vanish meanwhile are left out.
  std::vector<Vm> FindAll() const;

  // Those that are none of `known` (by PID and start time), for a search that is repeated: it looks
  // into as few processes as `non_vmms` allows. `now` as NonVmmCache takes it.
  std::vector<Vm> FindOthers(std::span<const Vm> known, NonVmmCache& non_vmms,
                             absl::Duration now) const;

  // The VM of this VMM process; its vCPUs may be empty, with a note that says how to get them.
  // Errors: NotFound (no such process, or it has ended), FailedPrecondition (no VMM, or a QEMU that
  // runs TCG), InvalidArgument (a thread's TID), Unavailable (a QEMU that is still starting),
  // PermissionDenied (what it is cannot be seen).
  absl::StatusOr<Vm> FindByPid(pid_t pid) const;

  // The VM with this name or UUID. Errors: NotFound (names those that there are),
  // FailedPrecondition (TCG), InvalidArgument (several match: names their PIDs).
  absl::StatusOr<Vm> FindByName(const std::string& name) const;

  // A VM given by the TIDs of its vCPU threads, indexed as the VMM does where thread names or
  // cgroups tell, else in the order given. They must be threads of one process which holds kvm-vcpu
  // descriptors. Errors: NotFound, InvalidArgument (threads of two processes, a TID twice),
  // FailedPrecondition (no KVM, or a thread that is known to be no vCPU), PermissionDenied (the
  // process's descriptors may not be read, and nothing else shows it to be a VMM).
  absl::StatusOr<Vm> FindByTids(std::span<const pid_t> tids) const;

  // The VM behind a QMP socket: `address` is `unix:PATH` or `tcp:HOST:PORT` (a bare path counts as
  // unix). Connects, asks, closes. Errors: InvalidArgument (address), Unavailable (refused, no such
  // socket, the greeting did not come within `timeout`: another client may hold it), DataLoss (not
  // QMP), FailedPrecondition (TCG), NotFound (the process is not visible here).
  absl::StatusOr<Vm> FindByQmp(const std::string& address, absl::Duration timeout) const;

  // VMs that `ancestor` started: its descendants by parent PID, and itself where it is a VMM.
  std::vector<Vm> FindDescendants(pid_t ancestor) const;

  // The same VM as it is now: cheap (reads the task list) where no thread came or went. Errors:
  // NotFound where the process has ended or its PID was reused; what the system said where it could
  // not be looked at, which says nothing of the VM. vCPU threads keep their index.
  // A VM found by TIDs is not searched for others (NotFound once all of them have ended); one found
  // by QMP is asked again only where a vCPU may have been added; the result remembers when.
  absl::StatusOr<Vm> Rescan(const Vm& vm) const;

 private:
  std::string root_;
};

}  // namespace vcpulse::kvm

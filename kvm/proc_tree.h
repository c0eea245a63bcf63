#pragma once

// The only place where discovery touches files: what it reads below /proc and KVM's debugfs, as
// parsed values. What cannot be read is absent: processes come and go while one looks.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvm/discovery/libvirt_cgroup.h"
#include "kvm/proc_files.h"

namespace vcpulse::kvm {

// The descriptors of one process that KVM made.
struct KvmDescriptors {
  bool readable = false;      // false where /proc/PID/fd may not be looked into
  int vms = 0;                // kvm-vm
  int vcpus = 0;              // kvm-vcpu
  std::vector<int> vcpu_ids;  // ascending; fewer than `vcpus` where the kernel prints no id
};

// A descriptor of a VMM behind which KVM keeps the statistics of one vCPU.
struct VcpuStatsDescriptor {
  int vcpu_id = 0;
  int fd = 0;  // its number in the VMM

  bool operator==(const VcpuStatsDescriptor&) const = default;
};

// One vCPU in KVM's debugfs.
struct DebugfsVcpu {
  int vm_fd = 0;
  int vcpu_id = 0;
  pid_t tid = 0;  // 0 until the vCPU first ran; stays when its thread is gone

  bool operator==(const DebugfsVcpu&) const = default;
};

// One thread of a process.
struct Thread {
  pid_t tid = 0;
  std::string name;  // comm
  TaskStat stat;

  bool operator==(const Thread&) const = default;
};

// Reads below `root` ("/" for this machine). Stateless; any thread.
class ProcTree {
 public:
  explicit ProcTree(const std::string& root);

  std::vector<pid_t> Processes() const;           // ascending
  std::vector<pid_t> ThreadIds(pid_t pid) const;  // ascending
  // Those that have not exited, by TID. `error`, where it is given, becomes the errno by which some
  // that are there could not be read, or 0.
  std::vector<Thread> Threads(pid_t pid, int* error = nullptr) const;
  // Of any thread's TID too. `error`, where it is given, is why there is nothing: 0 where it is no
  // such process, else an errno: it may be there.
  std::optional<TaskStat> ProcessStat(pid_t pid, int* error = nullptr) const;
  std::optional<TaskStat> ThreadStat(pid_t pid, pid_t tid) const;
  bool HasThread(pid_t pid, pid_t tid) const;           // takes no descriptor
  std::optional<Thread> NamedProcess(pid_t pid) const;  // name and stat in one read
  std::string ProcessName(pid_t pid) const;             // comm; "" where it cannot be read
  std::vector<std::string> CommandLine(pid_t pid) const;
  std::optional<TaskSched> ThreadSched(pid_t pid, pid_t tid) const;
  std::optional<pid_t> ThreadGroup(pid_t tid) const;              // the process of any thread
  std::optional<pid_t> InnermostTid(pid_t pid, pid_t tid) const;  // in the thread's own namespace
  LibvirtCgroup Cgroup(pid_t pid) const;                          // of the main thread
  LibvirtCgroup Cgroup(pid_t pid, pid_t tid) const;               // of any thread
  KvmDescriptors Descriptors(pid_t pid) const;

  // By vCPU id. Empty where the VMM holds none, or its descriptors may not be looked at.
  std::vector<VcpuStatsDescriptor> VcpuStatsDescriptors(pid_t pid) const;

  // Whether the process holds a kvm-vm descriptor; nothing where that may not be looked at. Stops
  // at the first one, so that a scan of the whole host stays cheap.
  std::optional<bool> HoldsVm(pid_t pid) const;

  // The vCPUs of one VMM in KVM's debugfs, by VM descriptor and vcpu id. Empty where debugfs is not
  // mounted, not readable, or has no such files (other architectures than x86).
  std::vector<DebugfsVcpu> DebugfsVcpus(pid_t pid) const;

  // The values of these names that KVM's debugfs has of the VM of a VMM, each the sum over its
  // vCPUs. Empty where debugfs is not mounted or not readable, or the process has not just one VM.
  std::vector<std::pair<std::string, uint64_t>> DebugfsSums(
      pid_t pid, std::span<const std::string_view> names) const;

 private:
  // The folders of its VMs.
  std::vector<std::string> DebugfsVms(pid_t pid) const;

  std::string proc_;     // ROOT/proc/
  std::string debugfs_;  // ROOT/sys/kernel/debug/kvm/
};

}  // namespace vcpulse::kvm

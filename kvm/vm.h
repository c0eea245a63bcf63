#pragma once

// What this host knows of one KVM guest. Plain data, filled by discovery.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vcpulse::kvm {

// How a vCPU's thread was found.
enum class FoundBy { kGiven, kQmp, kDebugfs, kThreadName, kCgroup, kGuestTime };

// What proves that the thread runs a KVM vCPU. kNone where /proc/PID/fd may not be looked into:
// unproven, not refused.
enum class Proof { kFd, kQmp, kDebugfs, kName, kNone };

enum class Accelerator { kKvm, kTcg, kUnknown };

std::string_view ToString(FoundBy found_by);  // "given", "qmp", "debugfs", "thread-name", "cgroup",
                                              // "guest-time"
std::string_view ToString(Proof proof);       // "fd", "qmp", "debugfs", "name", "none"
std::string_view ToString(Accelerator accelerator);  // "kvm", "tcg", "unknown"

// One guest CPU and the host thread that runs it. (tid, start_time_ticks) tells a reused TID.
struct Vcpu {
  int index = 0;              // the VMM's cpu-index
  std::optional<int> kvm_id;  // KVM's vcpu id (x86: APIC id, has holes)
  pid_t tid = 0;
  uint64_t start_time_ticks = 0;  // field 22 of /proc/PID/task/TID/stat
  FoundBy found_by = FoundBy::kGiven;
  Proof proof = Proof::kNone;

  bool operator==(const Vcpu&) const = default;
};

// One VM instance: (boot id, pid, start_time_ticks). Name and UUID are labels.
struct Vm {
  pid_t pid = 0;
  uint64_t start_time_ticks = 0;  // field 22 of /proc/PID/stat
  std::string name;               // the VMM's own, QMP's, libvirt's, else "pid-PID"
  std::string uuid;               // empty where unknown
  Accelerator accelerator = Accelerator::kUnknown;
  std::vector<Vcpu> vcpus;         // ascending by index; empty for TCG
  std::vector<std::string> notes;  // for people: what discovery noticed
  std::string qmp_address;         // where QMP was the route: a rescan may have to ask again
  int vcpu_descriptors = 0;        // kvm-vcpu descriptors seen; 0 where they may not be looked at
  // The newest thread (start time) when a rescan last asked QMP; 0 where none did.
  uint64_t qmp_asked_ticks = 0;
  bool userspace_irqchip =
      false;  // QEMU's kernel_irqchip=off: halted vCPUs wait in QEMU, not in KVM

  bool is_confidential = false;  // by QEMU's command line: memory and registers are encrypted

  bool operator==(const Vm&) const = default;
};

}  // namespace vcpulse::kvm

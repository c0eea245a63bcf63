#pragma once

// What the host says of each vCPU of one VM beside its counters: the scheduler's counts of its
// thread, and KVM's statistics. Read about once a second on the control thread, never by the tick.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kvm/base/fd.h"
#include "kvm/proc_tree.h"
#include "kvm/vm.h"

namespace vcpulse::kvm {

// One vCPU, as a source had it at one instant.
struct VcpuStatistics {
  int64_t mono_ns = 0;           // CLOCK_MONOTONIC
  std::vector<uint64_t> values;  // cumulative, in the order of the names; empty: could not be read
  std::optional<int> cpu;        // of the host, where it last ran; of the scheduler alone
};

// All vCPUs of the VM, as one source has them.
struct SourceStatistics {
  // "scheduler", "kvm-descriptor" (the VMM's own, taken by pidfd_getfd), "kvm-qmp" or
  // "kvm-debugfs".
  std::string_view source;
  std::vector<std::string> names;  // of the values, the source's own
  std::vector<VcpuStatistics> vcpus;
};

// Of the vCPU threads of one epoch. Holds one descriptor per vCPU where the VMM has such; destroyed
// at the VM's end, since they keep its memory. One thread.
class VmStatistics {
 public:
  // How long an answer of QMP is waited for: a recording waits with it.
  static constexpr absl::Duration kQmpTimeout = absl::Milliseconds(100);

  // `root` as in Discovery. `kernel_release` as of uname -r.
  VmStatistics(const std::string& root, Vm vm, std::string_view kernel_release, int64_t (*now_ns)(),
               absl::Duration qmp_timeout = kQmpTimeout);

  // The sources that can be read now. What a source cannot read of one vCPU (it has exited, or its
  // TID is another thread's now) has no values; a source that cannot be read at all is left out.
  // QMP is asked where the VM was found by it on a unix socket, and blocks for `qmp_timeout` at
  // most.
  std::vector<SourceStatistics> Read();

  // Why nothing of KVM's is read, for people; empty where it is.
  const std::string& kvm_refused() const { return kvm_refused_; }

 private:
  struct Descriptor {
    Fd fd;
    std::vector<std::pair<size_t, size_t>> places;  // (place among the names, offset)
  };

  SourceStatistics ReadScheduler() const;
  absl::Status OpenDescriptors(std::string_view kernel_release);
  SourceStatistics ReadDescriptors() const;
  absl::StatusOr<SourceStatistics> AskQmp() const;
  // Of a VM with one vCPU, whose values the sums are.
  std::optional<SourceStatistics> ReadDebugfs() const;

  ProcTree tree_;
  Vm vm_;
  int64_t (*now_ns_)();
  absl::Duration qmp_timeout_;
  std::vector<std::string> names_;       // of the descriptors' values
  std::vector<Descriptor> descriptors_;  // in the order of vm_.vcpus; none: there is no such route
  int64_t qmp_not_before_ns_ = 0;
  bool by_debugfs_ = false;  // QMP gave none
  std::string kvm_refused_;
};

// Whether a descriptor of statistics may be read on this kernel: before 6.5 it does not hold the
// VM, and reading after the VM's end reads freed memory (eed3013faa40).
bool StatsDescriptorsHoldTheirVm(std::string_view kernel_release);

}  // namespace vcpulse::kvm

#pragma once

// A /proc with QEMUs in it, and Discovery that reads it.

#include <sys/types.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kvm/discovery/discovery.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::kvm {

using Code = absl::StatusCode;
using Arguments = std::vector<std::string>;

inline constexpr char kVmLink[] = "anon_inode:kvm-vm";
inline constexpr char kVcpuLink[] = "anon_inode:kvm-vcpu:";
inline constexpr char kQemu[] = "qemu-system-x86_64";

inline std::vector<pid_t> TidsOf(const Vm& vm) {
  std::vector<pid_t> tids;
  for (const Vcpu& vcpu : vm.vcpus) tids.push_back(vcpu.tid);
  return tids;
}

inline std::vector<int> IndexesOf(const Vm& vm) {
  std::vector<int> indexes;
  for (const Vcpu& vcpu : vm.vcpus) indexes.push_back(vcpu.index);
  return indexes;
}

inline std::vector<int> KvmIdsOf(const Vm& vm) {
  std::vector<int> ids;
  for (const Vcpu& vcpu : vm.vcpus) ids.push_back(vcpu.kvm_id.value_or(-1));
  return ids;
}

inline std::string MessageOf(const absl::StatusOr<Vm>& vm) {
  return std::string(vm.status().message());
}

class DiscoveryTest : public ::testing::Test {
 protected:
  DiscoveryTest() : discovery_(tree_.root()) {
    tree_.AddProcess(1, "init", {"init"}, {"/dev/null"}, 0);
    tree_.AddProcess(50, "bash", {"bash"}, {"/dev/null", "/dev/kvm"});
  }

  // A QEMU with KVM: worker threads, `vcpus` vCPU threads from TID pid+10 on, as many descriptors.
  void AddQemu(pid_t pid, const Arguments& more, int vcpus, bool named, pid_t parent = 1) {
    Arguments arguments = {kQemu};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<std::string> links = {"/dev/null", "/dev/kvm", kVmLink};
    for (int i = 0; i < vcpus; ++i) links.push_back(kVcpuLink + std::to_string(i));
    tree_.AddProcess(pid, "qemu-system-x86", arguments, links, parent);
    tree_.AddThread(pid, pid + 1, "qemu-system-x86", 1001);
    tree_.AddThread(pid, pid + 2, "kvm-nx-lpage-re", 1005);
    for (int i = 0; i < vcpus; ++i) {
      const std::string name = named ? "CPU " + std::to_string(i) + "/KVM" : "qemu-system-x86";
      tree_.AddThread(pid, pid + 10 + i, name, 1002);
    }
  }

  // This process as a QEMU with KVM: `vcpus` unnamed vCPU threads from TID 101 on, started at 1002.
  void AddOwnQemu(int vcpus) {
    const pid_t self = ::getpid();
    std::vector<std::string> links = {kVmLink};
    for (int i = 0; i < vcpus; ++i) links.push_back(kVcpuLink + std::to_string(i));
    tree_.AddProcess(self, "qemu-system-x86", {kQemu}, links);
    for (int i = 0; i < vcpus; ++i) tree_.AddThread(self, 101 + i, "qemu-system-x86", 1002);
  }

  fakes::ProcDir tree_;
  Discovery discovery_;
};

}  // namespace vcpulse::kvm

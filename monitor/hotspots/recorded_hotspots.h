#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "monitor/hotspots/hotspots.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::hotspots {

// The hot addresses of a recording, added up per vCPU and source over its windows and epochs.
// Memory grows with the vCPUs, never with the windows. One thread.
class RecordedHotspots {
 public:
  // Takes vCPU sets and hot addresses; passes over others.
  void Add(const timeline::Entry& entry);

  // The VMs that were recorded, sampled or not, by number.
  const std::map<uint32_t, v1::VmInstance>& vms() const { return vms_; }
  // Of each vCPU that was sampled, by VM number, index and source. `vm`: of this one alone. Where
  // `symbols` has none of a VM, names are those that the file itself has (`vcpulse symbolize`).
  std::vector<VcpuHotspots> All(const GuestKernels& symbols,
                                std::optional<uint32_t> vm = std::nullopt) const;
  // Of one, by the source that has most samples; nothing where it was not sampled.
  std::optional<VcpuHotspots> Of(uint32_t vm, uint32_t vcpu, const GuestKernels& symbols) const;
  // Why no vCPU of a VM could be sampled; nothing where one was, or none was to be.
  std::optional<std::string> Refused(uint32_t vm) const;

 private:
  // Addresses of one vCPU: a kernel's hot code has some hundred. Where there are more, those with
  // one sample are forgotten, and counted without their address.
  static constexpr size_t kMostAddresses = 1 << 14;

  struct Key {
    uint32_t vm = 0;
    uint32_t vcpu = 0;
    kvm::AddressSource source = kvm::AddressSource::kCycles;

    auto operator<=>(const Key&) const = default;
  };
  // Samples at one address of windows after spinning, as the code that its own window holds has it.
  struct ByOwnCode {
    uint64_t waiting = 0;
    uint64_t others = 0;
  };
  struct Vcpu {
    VcpuHotspots sums;  // without names and spots
    kvm::AddressCounts counts;
    kvm::AddressCounts after_spinning;                   // thereof
    uint64_t samples_after_spinning = 0;                 // at addresses that were left out too
    std::map<kvm::GuestAddress, ByOwnCode> by_own_code;  // of after_spinning
  };
  using Names = std::map<uint64_t, Symbol>;    // by address
  static constexpr size_t kLongestName = 512;  // the kernel's own limit (KSYM_NAME_LEN)

  void Add(const v1::HotAddresses& hot);
  VcpuHotspots Named(const Key& key, const Vcpu& vcpu, const GuestKernels& symbols) const;

  std::map<uint32_t, v1::VmInstance> vms_;
  std::map<uint32_t, std::string> refused_;  // by VM: the latest reason of a window that was none
  std::map<Key, Vcpu> vcpus_;
  std::map<uint32_t, Names> names_;  // by VM: those that the file itself has
};

}  // namespace vcpulse::hotspots

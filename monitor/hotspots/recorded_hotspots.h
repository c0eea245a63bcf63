#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/hotspots/hotspots.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::hotspots {

// The hot addresses of a recording, added up per vCPU over its windows and epochs. Memory grows
// with the vCPUs, never with the windows. One thread.
class RecordedHotspots {
 public:
  // Takes vCPU sets and hot addresses; passes over others.
  void Add(const timeline::Entry& entry);

  // Of each vCPU that was sampled, by VM number and index.
  std::vector<VcpuHotspots> All(const GuestSymbols& symbols) const;
  // Of one; nothing where it was not sampled.
  std::optional<VcpuHotspots> Of(uint32_t vm, uint32_t vcpu, const GuestSymbols& symbols) const;
  // Why no source could be opened for a VM; nothing where one could, or none was asked for.
  std::optional<std::string> Refused(uint32_t vm) const;
  // Of any of the VMs.
  std::optional<std::string> AnyRefused() const;

 private:
  // Addresses of one vCPU. A kernel's hot paths are some hundred; the rest is counted without them.
  static constexpr size_t kMostAddresses = 1 << 14;

  struct Vm {
    std::string name;
    int64_t pid = 0;
    std::optional<std::string> refused;
  };
  struct Vcpu {
    VcpuHotspots sums;  // without names and spots
    kvm::AddressCounts counts;
  };
  using Key = std::pair<uint32_t, uint32_t>;  // VM number and index

  void Add(const v1::VcpuSet& set);
  void Add(const v1::HotAddresses& hot);
  VcpuHotspots Named(const Key& key, const Vcpu& vcpu, const GuestSymbols& symbols) const;

  std::map<uint32_t, Vm> vms_;
  std::map<Key, Vcpu> vcpus_;
};

}  // namespace vcpulse::hotspots

#pragma once

#include <cstdint>
#include <map>

#include "monitor/hotspots/symbols.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::hotspots {

// Where the kernel of each VM of a timeline was loaded, by the code that its windows hold. A guest
// may boot again within a recording, so each window has its own answer. Pure.
class Placements {
 public:
  // A window in the order of the timeline. `kernel` is that of its VM. A search that finds nothing
  // takes up to a second; after kMostMisses of them the VM's are not searched any more.
  static constexpr int kMostMisses = 8;
  void Add(uint64_t sequence, const v1::HotAddresses& window, const GuestKernel& kernel);

  // Whether code was compared, and none of it is in the kernel's file.
  bool IsAnotherKernel(uint32_t vm) const;

  // By how much it was moved at a window: as at the last one up to it that tells, else as at the
  // first one; 0 where none does.
  uint64_t MovedBy(uint32_t vm, uint64_t sequence) const;

 private:
  struct OfVm {
    std::map<uint64_t, uint64_t> found;  // by sequence number of the window
    int misses = 0;
  };

  std::map<uint32_t, OfVm> vms_;
};

}  // namespace vcpulse::hotspots

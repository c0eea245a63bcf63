#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "monitor/metric/core_neighbours.h"

namespace vcpulse::report {

// Which vCPUs ran on other threads of the core of one vCPU, by readings at which it ran. Bounded.
class SmtNeighbours {
 public:
  static constexpr size_t kMost = 256;  // later ones are counted alone

  void Add(const std::vector<metric::VcpuId>& neighbours) {
    ++readings_;
    for (const metric::VcpuId& vcpu : neighbours) {
      if (by_vcpu_.contains(vcpu) || by_vcpu_.size() < kMost) {
        ++by_vcpu_[vcpu];
      } else {
        ++omitted_;
      }
    }
  }

  uint64_t readings() const { return readings_; }
  uint64_t omitted() const { return omitted_; }  // times that a later one was there

  struct Neighbour {
    metric::VcpuId vcpu;
    uint64_t readings = 0;
  };
  std::vector<Neighbour> MostFirst() const;

 private:
  uint64_t readings_ = 0;
  uint64_t omitted_ = 0;
  std::map<metric::VcpuId, uint64_t> by_vcpu_;
};

}  // namespace vcpulse::report

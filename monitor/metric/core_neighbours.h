#pragma once

// Which vCPUs of a recording ran on two threads of one core (SMT siblings) at the same time. Pure.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace vcpulse::metric {

struct VcpuId {
  uint32_t vm = 0;     // its number in the timeline
  uint32_t index = 0;  // of the vCPU

  auto operator<=>(const VcpuId&) const = default;
};

class CoreNeighbours {
 public:
  // A vCPU that had less of the time between its last two readings is not counted as running.
  static constexpr double kRan = 0.1;
  // Readings of two vCPUs that are farther apart tell nothing of one instant: this, or one and a
  // half times the time between two readings of a vCPU, whichever is more (each has about one a
  // second, or one a tick).
  static constexpr double kSameTime_ns = 1.5e9;
  // More vCPUs are not kept of one core: a damaged file may put any number on it.
  static constexpr size_t kMostPerCore = 64;

  // As Session.cpu_cores.
  void SetCores(std::vector<uint32_t> cpu_cores) { cpu_cores_ = std::move(cpu_cores); }

  // A reading: on which CPU of the host the thread of this vCPU last ran, and how long it has run
  // altogether. What ran on other threads of that core, as far as it was read; nothing where that
  // is not known, or the vCPU itself did not run.
  std::optional<std::vector<VcpuId>> Add(VcpuId vcpu, uint32_t cpu, int64_t mono_ns,
                                         uint64_t run_ns);
  // Forgets the vCPUs of a VM.
  void Forget(uint32_t vm);

 private:
  struct Reading {
    uint32_t cpu = 0;
    int64_t mono_ns = 0;
    uint64_t run_ns = 0;
    bool ran = false;  // since the reading before
  };

  std::vector<uint32_t> cpu_cores_;
  std::map<VcpuId, Reading> latest_;
  // By the values of cpu_cores_: those that were there when they were last read, some long ago.
  std::map<uint32_t, std::set<VcpuId>> on_core_;
};

}  // namespace vcpulse::metric

#pragma once

// monitor/sampler is the tick: it reads every counter group and scheduler time of every VM into
// memory taken beforehand, and hands whole samples over. No Asio, no protobuf, no formatting here.

#include <boost/lockfree/spsc_queue.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvm/counters/counter_group.h"
#include "kvm/counters/group_opener.h"
#include "kvm/counters/scheduler_times.h"
#include "monitor/core/sample.h"

namespace vcpulse::sampler {

// A span of ticks, both ends inclusive.
struct TickRange {
  uint64_t first = 0;
  uint64_t last = 0;
};

// One vCPU as the tick reads it.
struct VcpuSource {
  kvm::VcpuGroups groups;  // the main one first
  kvm::ThreadScheduling scheduling;
  bool has_scheduling = false;  // false: it could not be opened, or...
  bool gone = false;            // ...the thread had exited by then
  // Of the last sample, to see whether anything ran since; 0 before the first.
  uint64_t previous_enabled_ns = 0;
  int64_t previous_read_ns = 0;
};

// One VM in one epoch: its open groups and descriptors, and the memory for its samples. Made and
// destroyed by the control thread; between Sampler::Add and the kRetired handover only the tick
// thread touches it, but for `vm`, `number` and Recycle.
struct Epoch {
  // Opens the scheduler files of every vCPU in `groups` (each with as many groups) below `root`,
  // enables the groups, and takes
  // memory for `buffers` samples. A thread that is gone already shows at the first tick; scheduler
  // times that this user or kernel does not give are left out. Errors: ResourceExhausted (no more
  // descriptors), what enabling said.
  static absl::StatusOr<std::unique_ptr<Epoch>> Start(uint32_t vm, uint32_t number,
                                                      const std::string& root, pid_t pid,
                                                      std::vector<kvm::VcpuGroups> groups,
                                                      const std::vector<kvm::Vcpu>& vcpus,
                                                      size_t buffers);

  Epoch(uint32_t vm, uint32_t number, size_t buffers);

  // Gives the memory of a sample back. Control thread.
  void Recycle(core::Sample* sample) { free.push(sample); }

  const uint32_t vm;
  const uint32_t number;
  std::vector<VcpuSource> vcpus;
  std::vector<core::Sample> buffers;
  boost::lockfree::spsc_queue<core::Sample*> free;
  bool retiring = false;
  bool ended = false;                // a vCPU thread has exited: nothing more to read
  std::optional<TickRange> dropped;  // ticks without room for a sample, not yet handed over
};

}  // namespace vcpulse::sampler

#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kvm/base/fd.h"
#include "kvm/counters/perf_events.h"
#include "kvm/counters/read_format.h"
#include "kvm/events/event.h"

namespace vcpulse::kvm {

// An event of the group that perf_event_open refused.
struct RefusedEvent {
  Event event;
  int error = 0;  // errno
};

// One perf event group on one thread, guest mode only, read with one read(2).
//
// The first event leads; the group is opened disabled and enabled once as a whole; it is flexible:
// a pinned group could starve the guest's own vPMU (kernel/events/core.c schedules pinned first).
class CounterGroup {
 public:
  // Opens `events` (at most kMaxGroupEvents) on thread `tid`, disabled. A sibling that is refused
  // is left out and added to `refused`. Returns the errno of the leader where that one is refused.
  // `perf` must outlive the group.
  static OrErrno<CounterGroup> Open(PerfEvents& perf, pid_t tid, std::span<const Event> events,
                                    std::vector<RefusedEvent>& refused);

  CounterGroup() = default;

  // Starts counting. Returns 0 or errno.
  int Enable();

  // The cumulative values since Enable, slots in the order of events(). Errors: errno of read(2);
  // EIO for a read that does not hold every member (a pinned or dead group). Allocates nothing.
  OrErrno<GroupValues> Read();

  // The leader's page, see EventPage; `perf` of Open gives it.
  EventPage Page() const { return perf_->Page(fds_.front().get()); }

  // The events that are counted, the leader first.
  std::span<const Event> events() const { return events_; }
  // Their descriptors, in the same order.
  std::span<const Fd> descriptors() const { return fds_; }

 private:
  PerfEvents* perf_ = nullptr;
  std::vector<Fd> fds_;  // leader first
  std::vector<Event> events_;
  std::array<uint64_t, kMaxGroupEvents> ids_{};
};

// All groups of one vCPU, the main one first.
using VcpuGroups = std::vector<CounterGroup>;

// The attributes of one member as rule 1 of docs/architecture.md wants them. Guest mode only, but
// for software events, which ignore exclude_host.
perf_event_attr AttrOf(const Event& event, bool leader);

}  // namespace vcpulse::kvm

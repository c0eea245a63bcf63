#pragma once

// How one group of events fares on the calling thread: opened, enabled, a short busy loop, read.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvm/counters/counter_group.h"
#include "kvm/counters/perf_events.h"
#include "kvm/events/event.h"

namespace vcpulse::kvm::doctor {

enum class Mode {
  kGuestOnly,  // as vcpulse records: rightly 0 on a thread that runs no guest
  kHostUser,   // user mode of the host: any user may count that of himself
};

struct EventCount {
  Event event;
  uint64_t count = 0;
};

struct GroupProbe {
  int error = 0;                      // errno of the leader's open, of enabling or of reading
  std::vector<RefusedEvent> refused;  // members left out
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;         // 0: opened, but the PMU never took it
  std::vector<EventCount> counts;  // of those that opened, the leader first

  bool Ran() const { return error == 0 && running_ns > 0; }
  uint64_t LeaderCount() const { return counts.empty() ? 0 : counts.front().count; }
};

// The errno of opening this event alone, 0 where it opens. At once.
int TryOpen(PerfEvents& perf, const Event& event, Mode mode);

// Takes about 3 ms. `events` are at most kMaxGroupEvents.
GroupProbe ProbeGroup(PerfEvents& perf, std::span<const Event> events, Mode mode);

// The calling thread on these CPUs only until the object goes; does nothing for an empty list or
// where the kernel refuses.
class OnCpus {
 public:
  explicit OnCpus(std::span<const int> cpus);
  OnCpus(const OnCpus&) = delete;
  OnCpus& operator=(const OnCpus&) = delete;
  ~OnCpus();

  bool moved() const { return !before_.empty(); }

 private:
  std::vector<int> before_;  // empty where nothing was changed
};

}  // namespace vcpulse::kvm::doctor

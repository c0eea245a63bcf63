#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vcpulse::kvm {

// One event, by perf's name and as perf_event_attr wants it.
struct Event {
  std::string name;
  uint32_t type = 0;  // PERF_TYPE_*, or a PMU's own type
  uint64_t config = 0;
  uint64_t config1 = 0;
  uint64_t config2 = 0;
  std::string pmu;  // the one PMU that it was named for; empty: any that knows it
  // Counts the host too: software events and tracepoints ignore exclude_host.
  bool host_side = false;

  bool operator==(const Event&) const = default;
};

// An event of the asked-for set that is not counted, and why.
struct AbsentEvent {
  std::string name;
  int error = 0;       // errno of perf_event_open; 0 where it was not tried
  std::string reason;  // for people

  bool operator==(const AbsentEvent&) const = default;
};

// What `--events` asked for, resolved for this host.
struct EventRequest {
  // Members of one entry must be read together: what stood in braces, or one event alone.
  std::vector<std::vector<Event>> groups;
  // Named, but not to be opened: their zero could not be believed.
  std::vector<AbsentEvent> absent;
};

}  // namespace vcpulse::kvm
